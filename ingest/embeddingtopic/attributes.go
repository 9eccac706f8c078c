package embeddingtopic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/sink/embedding"
)

// attributesControl is the header's value of a record of attributes, and attributesPrefix stands before the node's id
// in its key: under the id alone, compaction would keep it in place of the node's vector.
const (
	attributesControl = "attributes"
	attributesPrefix  = "giantstream.control/" + attributesControl + "/"
)

// wireAttributes is the value of a record of attributes.
type wireAttributes struct {
	Control    string          `json:"control"`
	NodeID     string          `json:"node_id"`
	Attributes json.RawMessage `json:"attributes"`
	EventTime  int64           `json:"event_time"`
	Shard      int             `json:"shard"`
	Seq        int64           `json:"seq"`
}

// EncodeAttributes makes the message of a node's attributes, without topic. It goes to the partition of the node's
// vector, so that the two stay in order.
func EncodeAttributes(a embedding.Attributes) (kafka.Message, error) {
	m := kafka.Message{Key: []byte(attributesPrefix + a.NodeID), WriterData: client.WithKey(a.NodeID),
		Headers: []kafka.Header{{Key: controlHeader, Value: []byte(attributesControl)}}}
	if a.NodeID == "" || !utf8.ValidString(a.NodeID) {
		return m, fmt.Errorf("encode attributes: the node id %q is empty or no UTF-8", a.NodeID)
	}
	if a.Attributes == "" {
		return m, nil // a tombstone
	}
	var err error
	m.Value, err = json.Marshal(wireAttributes{attributesControl, a.NodeID, json.RawMessage(a.Attributes), a.EventTime,
		a.Shard, a.Seq})
	if err != nil {
		return m, fmt.Errorf("encode attributes of %q: %w", a.NodeID, err)
	}
	return m, nil
}

// DecodeAttributes reads a record of attributes; ok is false for any other message.
func DecodeAttributes(m kafka.Message) (a embedding.Attributes, ok bool, err error) {
	if controlOf(m) != attributesControl {
		return a, false, nil
	}
	fail := func(err error) (embedding.Attributes, bool, error) {
		return a, false, fmt.Errorf("%w: topic %s partition %d offset %d: %w", ErrMalformed, m.Topic, m.Partition,
			m.Offset, err)
	}
	id, ok := strings.CutPrefix(string(m.Key), attributesPrefix)
	if !ok || id == "" {
		return fail(fmt.Errorf("attributes under the key %q", m.Key))
	}
	if len(m.Value) == 0 {
		return embedding.Attributes{NodeID: id}, true, nil
	}
	var w wireAttributes
	if err := json.Unmarshal(m.Value, &w); err != nil {
		return fail(err)
	}
	switch {
	case w.NodeID != id:
		return fail(fmt.Errorf("attributes of %q under the key %q", w.NodeID, m.Key))
	case len(w.Attributes) == 0 || w.Attributes[0] != '{':
		return fail(errors.New("attributes that are no object"))
	}
	return embedding.Attributes{NodeID: id, Attributes: string(w.Attributes), EventTime: w.EventTime, Shard: w.Shard,
		Seq: w.Seq}, true, nil
}

// PublishAttributes sends attributes as Publish sends embeddings. They lie behind what Publish has sent before.
func (p *Publisher) PublishAttributes(ctx context.Context, all []embedding.Attributes) error {
	return p.send(ctx, len(all), func(i int) (kafka.Message, error) { return EncodeAttributes(all[i]) })
}
