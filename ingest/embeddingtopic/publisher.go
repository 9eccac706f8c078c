package embeddingtopic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/sink/embedding"
)

// writer is what a Publisher needs of a client.Producer. Write returns nil only when every message
// has been acknowledged. Messages with the same key stay in order.
type writer interface {
	Write(ctx context.Context, messages ...kafka.Message) error
	Close() error
}

// publishBytes is how much is encoded before it is handed to the writer, so that memory stays
// bounded however many records Publish gets.
const publishBytes = 8 << 20

// attempts bounds how often the producer sends a batch. The caller of Publish retries too, and it
// knows whether it still owns the shard.
const attempts = 3

// Publisher sends records to the embeddings topic. It is safe for concurrent use.
type Publisher struct {
	w      writer
	topic  string
	format Format
}

// NewPublisher returns a publisher on the client's connections.
func NewPublisher(c *client.Client, topic string, format Format) *Publisher {
	return newPublisher(c.NewProducer(client.Zstd, client.Attempts(attempts)), topic, format)
}

func newPublisher(w writer, topic string, format Format) *Publisher {
	return &Publisher{w: w, topic: topic, format: format}
}

// Publish sends the records and returns nil once all are acknowledged. After an error some may have
// been sent: publish all of them again, which is harmless. The records of one node stay in the
// order given. When ctx ends, Publish starts no further write and returns once the write in flight
// has ended.
func (p *Publisher) Publish(ctx context.Context, records []embedding.Record) error {
	return p.PublishWith(ctx, records, nil)
}

// PublishWith is Publish with more headers: more, unless nil, returns those of a record.
func (p *Publisher) PublishWith(ctx context.Context, records []embedding.Record,
	more func(*embedding.Record) []kafka.Header) error {
	return p.send(ctx, len(records), func(i int) (kafka.Message, error) {
		m, err := p.format.Encode(records[i])
		if err == nil && more != nil {
			m.Headers = append(m.Headers, more(&records[i])...)
		}
		return m, err
	})
}

// send sends n messages, in batches of bounded size.
func (p *Publisher) send(ctx context.Context, n int, message func(i int) (kafka.Message, error)) error {
	var batch []kafka.Message
	size := 0
	for i := range n {
		m, err := message(i)
		if err != nil {
			return err
		}
		m.Topic = p.topic
		batch = append(batch, m)
		size += len(m.Key) + len(m.Value)
		if size >= publishBytes || i == n-1 {
			if err := p.write(ctx, batch); err != nil {
				return err
			}
			batch, size = batch[:0], 0
		}
	}
	return nil
}

// linger is how long Publish waits for the write in flight after its context has ended. It is well
// below the time that a consumer group gives its members to release their shards.
const linger = 15 * time.Second

// write returns when nothing of the batch is in flight any more. A kafka.Writer that sees its
// context end returns at once, but still sends its messages later. By then another worker may have
// the shard, and these embeddings would replace its newer ones of the same nodes.
func (p *Publisher) write(ctx context.Context, batch []kafka.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(linger, cancel) })()
	err := p.w.Write(lasting, batch...)
	if err == nil {
		return nil
	}
	// WriteErrors holds one error per message and prints them all.
	if each, ok := errors.AsType[kafka.WriteErrors](err); ok {
		if i := slices.IndexFunc(each, func(e error) bool { return e != nil }); i >= 0 {
			err = each[i]
		}
		return fmt.Errorf("publish embeddings: %d of %d records failed, the first: %w", each.Count(), len(batch), err)
	}
	return fmt.Errorf("publish %d embeddings: %w", len(batch), err)
}

// Close waits for what is in flight and closes the writer.
func (p *Publisher) Close() error {
	if err := p.w.Close(); err != nil {
		return fmt.Errorf("close the embeddings producer: %w", err)
	}
	return nil
}
