package mirror

import (
	"context"

	"giantstream/ingest/client"
	"giantstream/stream"

	"github.com/segmentio/kafka-go"
)

// Writer publishes mirrored assertions: it is what a stream shard calls its
// Mirror. Give every shard a writer of its own, so that one's Flush does not
// report another's failure.
type Writer struct {
	producer *client.Producer
	topic    string
}

// NewWriter returns a writer to the mirror topic.
func NewWriter(c *client.Client, topic string) *Writer {
	return &Writer{producer: c.NewProducer(), topic: topic}
}

// Publish queues MirrorPut and MirrorDelete mutations. They are safe after the
// next Flush; an error may be that of an earlier Publish.
func (w *Writer) Publish(ctx context.Context, ms []stream.Mutation) error {
	msgs := make([]kafka.Message, len(ms))
	for i := range ms {
		m := &ms[i]
		value, err := appendValue(make([]byte, 0, len(m.Other)+24), m)
		if err != nil {
			return err
		}
		msgs[i] = kafka.Message{Topic: w.topic, Key: []byte(m.ID), Value: value}
	}
	return w.producer.Send(ctx, msgs...)
}

// Flush waits until everything published is acknowledged and returns the first
// failure since the last Flush.
func (w *Writer) Flush(ctx context.Context) error { return w.producer.Flush(ctx) }

// Close flushes and stops the writer.
func (w *Writer) Close() error { return w.producer.Close() }
