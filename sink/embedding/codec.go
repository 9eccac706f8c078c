package embedding

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/segmentio/kafka-go"
)

// ErrMalformed: a message is no embedding record.
var ErrMalformed = errors.New("malformed embedding record")

// Format is how the values of messages are encoded.
type Format string

// The formats.
const (
	JSON   Format = "json"
	Binary Format = "binary"
)

// ParseFormat checks the name of a format.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case JSON, Binary:
		return f, nil
	}
	return "", fmt.Errorf("embedding format %q: use %q or %q", name, JSON, Binary)
}

// MaxDim bounds the dimension that Decode accepts.
const MaxDim = 1 << 16

// Encode makes the message of a record, without topic. JSON has no NaN or
// infinity, and nobody wants either, so both formats refuse them.
func (f Format) Encode(r Record) (kafka.Message, error) {
	m := kafka.Message{Key: []byte(r.NodeID)}
	switch {
	case r.NodeID == "" || !utf8.ValidString(r.NodeID):
		return m, fmt.Errorf("encode embedding: the node id %q is empty or no UTF-8", r.NodeID)
	case r.Deleted:
		m.Headers = headers(r, 0)
		return m, nil
	case len(r.Vector) == 0 || len(r.Vector) > MaxDim:
		return m, fmt.Errorf("encode embedding of %q: dimension %d is not in 1..%d", r.NodeID, len(r.Vector), MaxDim)
	}
	for i, x := range r.Vector {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return m, fmt.Errorf("encode embedding of %q: component %d is %v", r.NodeID, i, x)
		}
	}
	switch f {
	case JSON:
		m.Value = appendJSON(nil, r)
	case Binary:
		m.Headers = headers(r, len(r.Vector))
		m.Value = appendVector(nil, r.Vector)
	default:
		return m, fmt.Errorf("encode embedding: unknown format %q", string(f))
	}
	return m, nil
}

// Decode reads a message of either format, or a tombstone.
func Decode(m kafka.Message) (Record, error) {
	r, err := decode(m)
	if err != nil {
		return Record{}, fmt.Errorf("%w: topic %s partition %d offset %d: %w", ErrMalformed, m.Topic, m.Partition, m.Offset, err)
	}
	return r, nil
}

func decode(m kafka.Message) (Record, error) {
	if len(m.Key) == 0 {
		return Record{}, errors.New("no key")
	}
	r := Record{NodeID: string(m.Key), Deleted: len(m.Value) == 0}
	if !r.Deleted && len(m.Headers) == 0 {
		return decodeJSON(m)
	}
	dim, err := parseHeaders(&r, m.Headers)
	if err != nil || r.Deleted {
		return r, err
	}
	r.Vector, err = decodeVector(m.Value, dim)
	return r, err
}

// wireJSON mirrors what appendJSON writes.
type wireJSON struct {
	NodeID     string    `json:"node_id"`
	Generation int64     `json:"generation"`
	Dim        int       `json:"dim"`
	Embedding  []float32 `json:"embedding"`
	EventTime  int64     `json:"event_time"`
	Shard      int       `json:"shard"`
	Seq        int64     `json:"seq"`
}

func decodeJSON(m kafka.Message) (Record, error) {
	var w wireJSON
	if err := json.Unmarshal(m.Value, &w); err != nil {
		return Record{}, err
	}
	switch {
	case w.NodeID != string(m.Key):
		return Record{}, fmt.Errorf("node_id %q under the key %q", w.NodeID, m.Key)
	case w.Dim != len(w.Embedding) || w.Dim == 0 || w.Dim > MaxDim:
		return Record{}, fmt.Errorf("dim is %d, the embedding has %d components", w.Dim, len(w.Embedding))
	}
	return Record{NodeID: w.NodeID, Generation: w.Generation, Vector: w.Embedding,
		EventTime: w.EventTime, Shard: w.Shard, Seq: w.Seq}, nil
}

// appendJSON is several times as fast as encoding/json: a catalog of a
// million nodes is half a billion numbers.
func appendJSON(b []byte, r Record) []byte {
	b = append(b, `{"node_id":`...)
	b = appendJSONString(b, r.NodeID)
	b = append(b, `,"generation":`...)
	b = strconv.AppendInt(b, r.Generation, 10)
	b = append(b, `,"dim":`...)
	b = strconv.AppendInt(b, int64(len(r.Vector)), 10)
	b = append(b, `,"embedding":[`...)
	for i, x := range r.Vector {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32) // shortest that reads back as the same float32
	}
	b = append(b, `],"event_time":`...)
	b = strconv.AppendInt(b, r.EventTime, 10)
	b = append(b, `,"shard":`...)
	b = strconv.AppendInt(b, int64(r.Shard), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, r.Seq, 10)
	return append(b, '}')
}

func appendJSONString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // cannot fail on a string
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
