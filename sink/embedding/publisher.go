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
		MaxAttempts:  3, // whoever publishes tries again, and knows whether it still should
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
// harmless. The records of one node are kept in the order given. When ctx ends,
// Publish begins nothing more, and returns once what is under way has ended.
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

// linger is how long Publish waits for what is under way after its context
// has ended. It ends well within the time that a consumer group gives its
// members to let go of their shards.
const linger = 15 * time.Second

// write returns when nothing of the batch is under way any more. A kafka.Writer
// whose context ends returns at once and sends its messages nevertheless, later:
// by then another worker may have the shard, and newer embeddings of the same
// nodes would be replaced by these.
func (p *Publisher) write(ctx context.Context, batch []kafka.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(linger, cancel) })()
	err := p.w.WriteMessages(lasting, batch...)
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
