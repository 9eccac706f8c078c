package deadletter

import (
	"context"
	"slices"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"

	"github.com/segmentio/kafka-go"
)

// Keyer finds the key of a record that had none, by the present mapping; nil if there is still
// none.
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
	for _, topic := range t.Further {
		if topic == "" {
			continue
		}
		if decoders[topic], err = decode.Further(&m, topic, t.NumberOf(topic), l, 1); err != nil {
			return nil, err
		}
	}
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
	Sent int `json:"sent"`
	// Truncated letters cannot be sent: their values are incomplete.
	Truncated int `json:"truncated"`
	// Rows of CSV files cannot be sent: they are no records before they are corrected in the file.
	Rows int `json:"csv_rows"`
	// Foreign records on the topic are not letters and are not sent.
	Foreign int `json:"foreign"`
	// Elsewhere counts letters of topics that this pipeline does not read, which are not sent: a writer
	// to the dead-letter topic must not choose where a replay writes.
	Elsewhere int `json:"elsewhere"`
}

// Replay sends the records of the matching letters to their topics again, with their own key, value
// and timestamp. So they mean what they meant the first time: a statement with a later event time
// still wins. Records without a key get the one that key finds; if key is nil they stay without. A
// header names the origin, and the new letter of a record that fails again carries it as ReplayOf.
// Once the records are acknowledged, marks on the dead-letter topic close the letters. After an
// interruption before that, the same letters are sent again, which changes nothing.
func Replay(ctx context.Context, c *client.Client, topics ingest.Topics, f Filter, key Keyer,
	clock func() time.Time) (Replayed, error) {
	var done Replayed
	var sent []Origin
	read := append(topics.Inputs(), topics.Sources()...)
	p := c.NewProducer()
	defer p.Close() //nolint:errcheck // Flush reports what matters.
	for l, err := range List(ctx, c, topics.DeadLetters, f) {
		if err != nil {
			return done, err
		}
		if l.Foreign() {
			done.Foreign++
			continue
		}
		if !slices.Contains(read, l.ReadIn()) {
			done.Elsewhere++
			continue
		}
		if l.Code == decode.BadCSV {
			done.Rows++
			continue
		}
		if l.Truncated() {
			done.Truncated++
			continue
		}
		if l.Key == nil && key != nil {
			l.Key = key(l.ReadIn(), l.Value)
		}
		err := p.Send(ctx, kafka.Message{
			Topic: l.ReadIn(), Key: l.Key, Value: l.Value, Time: l.Time,
			Headers: append([]kafka.Header{{Key: hReplayOf, Value: []byte(l.Origin.String())}}, l.carried()...),
		})
		if err != nil {
			return done, err
		}
		done.Sent++
		sent = append(sent, l.Origin)
	}
	if err := p.Flush(ctx); err != nil {
		return done, err
	}
	for _, o := range sent {
		if err := p.Send(ctx, mark(topics.DeadLetters, o, closing{what: replayedMark, at: clock()})); err != nil {
			return done, err
		}
	}
	return done, p.Flush(ctx)
}
