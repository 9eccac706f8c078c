package deadletter

import (
	"context"
	"fmt"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/recordtrace"

	"github.com/segmentio/kafka-go"
)

// Writer publishes dead letters. It is safe for concurrent use.
type Writer struct {
	producer *client.Producer
	topic    string
	clock    func() time.Time
}

// NewWriter returns a writer to the topic. The clock stamps the letters.
func NewWriter(c *client.Client, topic string, clock func() time.Time) *Writer {
	return &Writer{producer: c.NewProducer(), topic: topic, clock: clock}
}

// FromMessage makes the letter of a record that could not be used.
func FromMessage(m kafka.Message, f *decode.Fault) Letter {
	l := Letter{
		Origin: Origin{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset},
		Code:   f.Code, Message: f.Message,
		Key: m.Key, Value: m.Value, Time: m.Time,
		Trace: recordtrace.Given(m.Headers),
	}
	for _, h := range m.Headers {
		switch h.Key {
		case hReplayOf:
			l.ReplayOf = string(h.Value)
		case ingest.KeyHeader:
			l.OwnKey = h.Value
		}
	}
	return l
}

// FromTooLarge makes the letter of a record that was too large to be read whole; limit is that of a
// record, in bytes.
func FromTooLarge(t *client.TooLarge, limit int) Letter {
	l := FromMessage(t.Message, &decode.Fault{Code: decode.RecordTooLarge,
		Message: fmt.Sprintf("the value has %d bytes, or too many headers; the limit is %d", t.Size, limit)})
	l.Size, l.SHA256 = t.Size, t.SHA256
	return l
}

// Publish queues letters; they are safe after the next Flush. The bytes of the letters must not
// change until then.
func (w *Writer) Publish(ctx context.Context, letters ...Letter) error {
	now := w.clock()
	for i := range letters {
		l := letters[i]
		l.At = now
		l.cut()
		if err := w.producer.Send(ctx, l.message(w.topic)); err != nil {
			return err
		}
	}
	return nil
}

// Flush waits until all published letters are acknowledged.
func (w *Writer) Flush(ctx context.Context) error { return w.producer.Flush(ctx) }

// Close flushes and stops the writer.
func (w *Writer) Close() error { return w.producer.Close() }
