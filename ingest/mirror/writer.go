package mirror

import (
	"context"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/stream/mutation"
)

// Writer publishes mirrored assertions: a stream shard calls it its Mirror. Give every shard a
// Writer of its own, so that the Flush of one shard does not report the failure of another.
type Writer struct {
	producer *client.Producer
	topic    string
	pipeline Pipeline
	// Headers, unless nil, returns those of an assertion's record.
	Headers func(*mutation.Mutation) []kafka.Header
}

// roomRecords is what the batches of a writer to all partitions have room for, in records; a batch has room
// for at least roomLeast, which cost as much to send as one.
const (
	roomRecords = 8192
	roomLeast   = 64
)

// NewWriter returns a writer to the mirror topic, which has the given number of partitions.
func NewWriter(c *client.Client, topic string, partitions int, pipeline Pipeline) *Writer {
	return &Writer{producer: c.NewProducer(client.BatchRecords(max(roomLeast, roomRecords/partitions))),
		topic: topic, pipeline: pipeline}
}

// Publish queues MirrorPut and MirrorDelete mutations. They are safe after the next Flush; an error
// may be that of an earlier Publish.
func (w *Writer) Publish(ctx context.Context, ms []mutation.Mutation) error {
	msgs := make([]kafka.Message, len(ms))
	for i := range ms {
		m := &ms[i]
		value, err := appendValue(make([]byte, 0, len(m.Other)+32), w.pipeline, m)
		if err != nil {
			return err
		}
		msgs[i] = kafka.Message{Topic: w.topic, Key: []byte(m.ID), Value: value}
		if w.Headers != nil {
			msgs[i].Headers = w.Headers(m)
		}
	}
	return w.producer.Send(ctx, msgs...)
}

// Flush waits until everything published is acknowledged and returns the first failure since the
// last Flush.
func (w *Writer) Flush(ctx context.Context) error { return w.producer.Flush(ctx) }

// Close flushes and stops the writer.
func (w *Writer) Close() error { return w.producer.Close() }
