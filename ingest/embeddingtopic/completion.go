package embeddingtopic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/sink/embedding"
)

const (
	// controlHeader marks records that are no embeddings. Its value says what they are.
	controlHeader = "control"
	complete      = "generation_complete"
)

// EncodeCompletion makes the message of a completion, without topic and partition.
func EncodeCompletion(c embedding.Completion) (kafka.Message, error) {
	value, err := json.Marshal(struct {
		Control string `json:"control"`
		embedding.Completion
	}{complete, c})
	if err != nil {
		return kafka.Message{}, fmt.Errorf("encode the completion of generation %d: %w", c.Generation, err)
	}
	return kafka.Message{Value: value,
		// One for each shard stays when the topic is compacted.
		Key:     fmt.Appendf(nil, "giantstream.control/%s/%d", complete, c.Shard),
		Headers: []kafka.Header{{Key: controlHeader, Value: []byte(complete)}}}, nil
}

// Announce sends a completion to each of the topic's partitions, and returns once all are acknowledged. What Publish
// has sent before lies before it in every partition.
func (p *Publisher) Announce(ctx context.Context, partitions int, c embedding.Completion) error {
	one, err := EncodeCompletion(c)
	if err != nil {
		return err
	}
	messages := make([]kafka.Message, partitions)
	for i := range messages {
		messages[i] = one
		messages[i].Topic, messages[i].WriterData = p.topic, client.ToPartition(i)
	}
	return p.write(ctx, messages)
}

// IsControl reports whether a message is no embedding but a control record, which Decode refuses.
func IsControl(m kafka.Message) bool { return controlOf(m) != "" }

// controlOf returns what a control record is, "" for any other message.
func controlOf(m kafka.Message) string {
	for _, h := range m.Headers {
		if h.Key == controlHeader {
			return cmp.Or(string(h.Value), "unknown")
		}
	}
	return ""
}

// DecodeCompletion reads a control record of Announce; ok is false for any other message.
func DecodeCompletion(m kafka.Message) (c embedding.Completion, ok bool, err error) {
	if controlOf(m) != complete {
		return c, false, nil
	}
	if err := json.Unmarshal(m.Value, &c); err != nil {
		return c, false, fmt.Errorf("%w: topic %s partition %d offset %d: %w", ErrMalformed, m.Topic, m.Partition,
			m.Offset, err)
	}
	return c, true, nil
}
