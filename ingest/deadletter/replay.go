package deadletter

import (
	"context"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"

	"github.com/segmentio/kafka-go"
)

// Keyer finds the key for a record that had none, by the mapping of today;
// nil if it still has none.
type Keyer func(topic string, value []byte) []byte

// NewKeyer returns a keyer for the input topics.
func NewKeyer(t ingest.Topics, m decode.Mapping, l decode.Limits) (Keyer, error) {
	nodes, err := decode.Nodes(m.Nodes, l, 1)
	if err != nil {
		return nil, err
	}
	edges, err := decode.Edges(m.Edges, l, 1)
	if err != nil {
		return nil, err
	}
	decoders := map[string]*decode.Decoder{t.Nodes: nodes, t.Edges: edges}
	return func(topic string, value []byte) []byte {
		d := decoders[topic]
		if d == nil {
			return nil
		}
		id, _, ok := d.Route(value)
		if !ok {
			return nil
		}
		return []byte(id)
	}, nil
}

// Replayed counts what Replay did.
type Replayed struct {
	Sent int
	// Truncated letters cannot be sent: their values are not whole.
	Truncated int
}

// Replay sends the records of the matching letters to their topics again, with
// their own key, value and timestamp, so that they mean what they meant: what
// has been stated since by a later event time still wins. Records without a
// key get the one that key finds; nil leaves them without. A header names the
// origin; if the record fails again, its new letter carries it as ReplayOf.
func Replay(ctx context.Context, c *client.Client, topic string, f Filter, key Keyer) (Replayed, error) {
	var done Replayed
	p := c.NewProducer()
	defer p.Close() //nolint:errcheck // Flush reports what matters.
	for l, err := range List(ctx, c, topic, f) {
		if err != nil {
			return done, err
		}
		if l.Truncated() {
			done.Truncated++
			continue
		}
		if l.Key == nil && key != nil {
			l.Key = key(l.Topic, l.Value)
		}
		err := p.Send(ctx, kafka.Message{
			Topic: l.Topic, Key: l.Key, Value: l.Value, Time: l.Time,
			Headers: []kafka.Header{{Key: hReplayOf, Value: []byte(l.Origin.String())}},
		})
		if err != nil {
			return done, err
		}
		done.Sent++
	}
	return done, p.Flush(ctx)
}
