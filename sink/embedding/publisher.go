package embedding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// MessageWriter is what a Publisher needs of a *kafka.Writer. WriteMessages
// returns nil only when every message has been acknowledged. Messages with the same
// key must stay in order.
type MessageWriter interface {
	WriteMessages(ctx context.Context, messages ...kafka.Message) error
	Close() error
}

// NewWriter returns the kafka.Writer that publishing wants: partitioned like
// Java's producers (murmur2 of the key), acknowledged by all in-sync
// replicas, and without kafka-go's default wait of a second per batch.
// transport holds TLS and SASL; nil is a plain connection.
func NewWriter(brokers []string, topic string, transport kafka.RoundTripper) *kafka.Writer {
	return &kafka.Writer{
		Addr:         kafka.TCP(brokers...),
		Topic:        topic,
		Balancer:     kafka.Murmur2Balancer{Consistent: true},
		RequiredAcks: kafka.RequireAll,
		MaxAttempts:  10,
		BatchTimeout: 5 * time.Millisecond,
		BatchSize:    1000,
		BatchBytes:   900_000, // brokers refuse batches over 1 MiB by default, headers included
		Compression:  kafka.Zstd,
		Transport:    transport,
	}
}

// publishBytes is how much is encoded before it is handed to the writer, so
// that memory stays bounded however many records Publish gets.
const publishBytes = 8 << 20

// Publisher sends records to the sink topic.
type Publisher struct {
	w      MessageWriter
	format Format
}

// NewPublisher publishes through w, which Close closes.
func NewPublisher(w MessageWriter, format Format) *Publisher {
	return &Publisher{w: w, format: format}
}

// Publish sends the records and returns nil once all are acknowledged. After
// an error some may have been sent: publish them all again, which is
// harmless. The records of one node are kept in the order given.
func (p *Publisher) Publish(ctx context.Context, records []Record) error {
	var batch []kafka.Message
	size := 0
	for i, r := range records {
		m, err := p.format.Encode(r)
		if err != nil {
			return err
		}
		batch = append(batch, m)
		size += len(m.Key) + len(m.Value)
		if size >= publishBytes || i == len(records)-1 {
			if err := p.write(ctx, batch); err != nil {
				return err
			}
			batch, size = batch[:0], 0
		}
	}
	return nil
}

func (p *Publisher) write(ctx context.Context, batch []kafka.Message) error {
	err := p.w.WriteMessages(ctx, batch...)
	if err == nil {
		return nil
	}
	// WriteErrors holds one error per message and prints them all.
	if each, ok := errors.AsType[kafka.WriteErrors](err); ok {
		if first := firstError(each); first != nil {
			err = first
		}
		return fmt.Errorf("publish embeddings: %d of %d records failed, the first: %w", each.Count(), len(batch), err)
	}
	return fmt.Errorf("publish %d embeddings: %w", len(batch), err)
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close waits for what is in flight and closes the writer.
func (p *Publisher) Close() error {
	if err := p.w.Close(); err != nil {
		return fmt.Errorf("close embedding writer: %w", err)
	}
	return nil
}
