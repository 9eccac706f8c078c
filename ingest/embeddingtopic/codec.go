package embeddingtopic

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/segmentio/kafka-go"

	"giantstream/internal/vector"
	"giantstream/sink/embedding"
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

// maxDim bounds the dimension that Decode accepts.
const maxDim = 1 << 16

// Encode makes the message of a record, without topic. JSON has no NaN or infinity, and an
// embedding should have neither, so both formats refuse them.
func (f Format) Encode(r embedding.Record) (kafka.Message, error) {
	m := kafka.Message{Key: []byte(r.NodeID)}
	switch {
	case r.NodeID == "" || !utf8.ValidString(r.NodeID):
		return m, fmt.Errorf("encode embedding: the node id %q is empty or no UTF-8", r.NodeID)
	case r.Deleted:
		m.Headers = headers(r, 0)
		return m, nil
	case !r.Status.Valid():
		return m, fmt.Errorf("encode embedding of %q: unknown status %q", r.NodeID, r.Status)
	case r.Status == embedding.NoText && len(r.Vector) > 0:
		return m, fmt.Errorf("encode embedding of %q: a vector, and the status %s", r.NodeID, r.Status)
	case r.Status != embedding.NoText && len(r.Vector) == 0 || len(r.Vector) > maxDim:
		return m, fmt.Errorf("encode embedding of %q: dimension %d is not in 1..%d", r.NodeID, len(r.Vector), maxDim)
	}
	if r.Status == embedding.NoText {
		r.Type, r.Scale = "", 0 // of no vector
	}
	for i, x := range r.Vector {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return m, fmt.Errorf("encode embedding of %q: component %d is %v", r.NodeID, i, x)
		}
	}
	var codes []int8
	switch r.Type {
	case embedding.Int8:
		var err error
		if codes, err = r.Codes(); err != nil {
			return m, err
		}
	case embedding.Float16:
		for i, x := range r.Vector {
			if y := vector.FromHalf(vector.Half(x)); y != x {
				return m, fmt.Errorf("encode embedding of %q: component %d is %g, which is no float16", r.NodeID, i, x)
			}
		}
	}
	switch f {
	case JSON:
		m.Value = appendJSON(nil, r, codes)
	case Binary:
		m.Headers = headers(r, len(r.Vector))
		m.Value = appendVector([]byte{}, r, codes) // not nil, which would be a tombstone
	default:
		return m, fmt.Errorf("encode embedding: unknown format %q", string(f))
	}
	return m, nil
}

// Decode reads a message of either format, or a tombstone.
func Decode(m kafka.Message) (embedding.Record, error) {
	r, err := decode(m)
	if err != nil {
		return embedding.Record{}, fmt.Errorf("%w: topic %s partition %d offset %d: %w", ErrMalformed, m.Topic,
			m.Partition, m.Offset, err)
	}
	return r, nil
}

func decode(m kafka.Message) (embedding.Record, error) {
	if len(m.Key) == 0 {
		return embedding.Record{}, errors.New("no key")
	}
	if IsControl(m) {
		return embedding.Record{}, errors.New("a control record")
	}
	r := embedding.Record{NodeID: string(m.Key), Deleted: len(m.Value) == 0}
	if !r.Deleted && len(m.Headers) == 0 {
		return decodeJSON(m)
	}
	dim, err := parseHeaders(&r, m.Headers)
	if err != nil {
		return r, err
	}
	if r.Status == embedding.NoText {
		r.Deleted, r.Type, r.Scale = false, "", 0
		if len(m.Value) > 0 {
			return r, fmt.Errorf("a value of %d bytes with the status %s", len(m.Value), r.Status)
		}
		return r, nil
	}
	if r.Deleted {
		r.Type = ""
	}
	if r.Type != embedding.Int8 {
		r.Scale = 0
	}
	if r.Deleted {
		return r, nil
	}
	return r, decodeVector(&r, m.Value, dim)
}

// wireJSON mirrors what appendJSON writes.
type wireJSON struct {
	NodeID     string    `json:"node_id"`
	Generation int64     `json:"generation"`
	Space      int64     `json:"space"` // older releases leave it out where it is the generation
	Dim        int       `json:"dim"`
	Type       string    `json:"type"`
	Scale      float32   `json:"scale"`
	Embedding  []float32 `json:"embedding"`
	EventTime  int64     `json:"event_time"`
	Shard      int       `json:"shard"`
	Seq        int64     `json:"seq"`
	// Status is left out where the vector is of the node's text.
	Status embedding.Status `json:"status"`
}

func decodeJSON(m kafka.Message) (embedding.Record, error) {
	var w wireJSON
	if err := json.Unmarshal(m.Value, &w); err != nil {
		return embedding.Record{}, err
	}
	switch {
	case w.NodeID != string(m.Key):
		return embedding.Record{}, fmt.Errorf("node_id %q under the key %q", w.NodeID, m.Key)
	case !w.Status.Valid():
		return embedding.Record{}, fmt.Errorf("unknown status %q", w.Status)
	case w.Shard < 0 || w.Shard > math.MaxInt32:
		return embedding.Record{}, fmt.Errorf("shard is %d", w.Shard)
	case w.Dim != len(w.Embedding) || (w.Dim == 0) != (w.Status == embedding.NoText) || w.Dim > maxDim:
		return embedding.Record{}, fmt.Errorf("dim is %d, the embedding has %d components", w.Dim, len(w.Embedding))
	}
	r := embedding.Record{NodeID: w.NodeID, Generation: w.Generation, Vector: w.Embedding,
		Status: w.Status, EventTime: w.EventTime, Shard: w.Shard, Seq: w.Seq}
	setSpace(&r, w.Space)
	if r.Status == embedding.NoText {
		r.Vector = nil
		return r, nil
	}
	var err error
	if r.Type, err = parseType(w.Type); err != nil {
		return embedding.Record{}, err
	}
	switch r.Type {
	case embedding.Float16:
		for i, x := range r.Vector {
			if r.Vector[i] = vector.FromHalf(vector.Half(x)); math.IsInf(float64(r.Vector[i]), 0) {
				return embedding.Record{}, fmt.Errorf("component %d is %g, too large for a float16", i, x)
			}
		}
	case embedding.Int8:
		codes := make([]int8, len(w.Embedding))
		for i, x := range w.Embedding {
			if !(x >= math.MinInt8 && x <= math.MaxInt8) || x != float32(int8(x)) {
				return embedding.Record{}, fmt.Errorf("component %d is %g, which is no int8", i, x)
			}
			codes[i] = int8(x)
		}
		err = r.SetCodes(codes, w.Scale)
	}
	return r, err
}

// halves are the shortest decimals that read back as each half of positive sign, when rounded to a half.
var halves = sync.OnceValue(func() *[1 << 15]string {
	var all [1 << 15]string
	for h := range all {
		x := vector.FromHalf(uint16(h))
		for digits := 1; ; digits++ {
			all[h] = strconv.FormatFloat(float64(x), 'g', digits, 32)
			y, err := strconv.ParseFloat(all[h], 32)
			if err != nil || vector.Half(float32(y)) == uint16(h) || digits == 9 {
				break
			}
		}
	}
	return &all
})

// appendJSON is several times as fast as encoding/json: a catalog of a million nodes is half a
// billion numbers.
func appendJSON(b []byte, r embedding.Record, codes []int8) []byte {
	b = append(b, `{"node_id":`...)
	b = appendJSONString(b, r.NodeID)
	b = append(b, `,"generation":`...)
	b = strconv.AppendInt(b, r.Generation, 10)
	if space := spaceOf(&r); space != 0 {
		b = append(b, `,"space":`...)
		b = strconv.AppendInt(b, space, 10)
	}
	b = append(b, `,"dim":`...)
	b = strconv.AppendInt(b, int64(len(r.Vector)), 10)
	if narrow(r.Type) {
		b = append(b, `,"type":"`...)
		b = append(b, r.Type...)
		b = append(b, '"')
	}
	if r.Type == embedding.Int8 {
		b = append(b, `,"scale":`...)
		b = strconv.AppendFloat(b, float64(r.Scale), 'g', -1, 32)
	}
	b = append(b, `,"embedding":[`...)
	for i, x := range r.Vector {
		if i > 0 {
			b = append(b, ',')
		}
		switch r.Type {
		case embedding.Float16:
			if math.Signbit(float64(x)) {
				b = append(b, '-')
			}
			b = append(b, halves()[vector.Half(x)&0x7FFF]...)
		case embedding.Int8:
			b = strconv.AppendInt(b, int64(codes[i]), 10)
		default:
			b = strconv.AppendFloat(b, float64(x), 'g', -1, 32) // shortest that reads back as the same float32
		}
	}
	b = append(b, `],"event_time":`...)
	b = strconv.AppendInt(b, r.EventTime, 10)
	b = append(b, `,"shard":`...)
	b = strconv.AppendInt(b, int64(r.Shard), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, r.Seq, 10)
	if r.Status != embedding.FromText {
		b = append(b, `,"status":"`...)
		b = append(b, r.Status...)
		b = append(b, '"')
	}
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
