package embeddingtopic

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/segmentio/kafka-go"

	"giantstream/internal/vector"
	"giantstream/sink/embedding"
)

// Headers of binary records and of tombstones, with decimal values but for the status.
const (
	headerGeneration = "generation"
	headerDim        = "dim"
	headerEventTime  = "event_time"
	headerShard      = "shard"
	headerSeq        = "seq"
	headerType       = "type"  // missing: float32
	headerScale      = "scale" // of int8
	headerStatus     = "status"
	headerSpace      = "space" // missing in records of older releases: the generation
)

// narrow says whether a record names its type.
func narrow(t embedding.Type) bool { return t == embedding.Float16 || t == embedding.Int8 }

// spaceOf returns what a record says of its space: consumers need not know that it may be the generation itself.
func spaceOf(r *embedding.Record) int64 { return cmp.Or(r.Space, r.Generation) }

// setSpace is the reverse.
func setSpace(r *embedding.Record, space int64) {
	if r.Space = space; space == r.Generation {
		r.Space = 0
	}
}

// headers returns the fields of a record other than its vector. A dim of 0 (a tombstone, or a node
// without text) is left out, and so is the status of a vector made from text.
func headers(r embedding.Record, dim int) []kafka.Header {
	number := func(key string, n int64) kafka.Header {
		return kafka.Header{Key: key, Value: strconv.AppendInt(nil, n, 10)}
	}
	h := []kafka.Header{number(headerGeneration, r.Generation)}
	if space := spaceOf(&r); space != 0 && !r.Deleted {
		h = append(h, number(headerSpace, space))
	}
	if dim > 0 {
		h = append(h, number(headerDim, int64(dim)))
		if narrow(r.Type) {
			h = append(h, kafka.Header{Key: headerType, Value: []byte(r.Type)})
		}
		if r.Type == embedding.Int8 {
			scale := strconv.AppendFloat(nil, float64(r.Scale), 'g', -1, 32)
			h = append(h, kafka.Header{Key: headerScale, Value: scale})
		}
	}
	h = append(h, number(headerEventTime, r.EventTime), number(headerShard, int64(r.Shard)), number(headerSeq, r.Seq))
	if r.Status != embedding.FromText && !r.Deleted {
		h = append(h, kafka.Header{Key: headerStatus, Value: []byte(r.Status)})
	}
	return h
}

// parseHeaders fills r and returns the dimension. Headers that other programs have added (tracing)
// are ignored; a tombstone may have no headers at all.
func parseHeaders(r *embedding.Record, headers []kafka.Header) (dim int, err error) {
	space := int64(0)
	defer func() { setSpace(r, space) }()
	for _, h := range headers {
		var n int64
		switch h.Key {
		case headerGeneration, headerSpace, headerDim, headerEventTime, headerShard, headerSeq:
			if n, err = strconv.ParseInt(string(h.Value), 10, 64); err != nil {
				return 0, fmt.Errorf("header %s: %w", h.Key, err)
			}
		}
		switch h.Key {
		case headerGeneration:
			r.Generation = n
		case headerSpace:
			space = n
		case headerDim:
			if n < 1 || n > maxDim {
				return 0, fmt.Errorf("header dim: %d is not in 1..%d", n, maxDim)
			}
			dim = int(n)
		case headerEventTime:
			r.EventTime = n
		case headerShard:
			if n < 0 || n > math.MaxInt32 {
				return 0, fmt.Errorf("header shard: %d", n)
			}
			r.Shard = int(n)
		case headerSeq:
			r.Seq = n
		case headerType:
			if r.Type, err = parseType(string(h.Value)); err != nil {
				return 0, fmt.Errorf("header type: %w", err)
			}
		case headerScale:
			scale, err := strconv.ParseFloat(string(h.Value), 32)
			if err != nil {
				return 0, fmt.Errorf("header scale: %w", err)
			}
			r.Scale = float32(scale)
		case headerStatus:
			if r.Status = embedding.Status(h.Value); !r.Status.Valid() {
				return 0, fmt.Errorf("header status: %q", h.Value)
			}
		}
	}
	return dim, nil
}

// parseType reads the type of a record; that of float32 is "".
func parseType(name string) (embedding.Type, error) {
	t, err := embedding.ParseType(name)
	if t == embedding.Float32 {
		t = ""
	}
	return t, err
}

// appendVector appends the numbers of a vector, little-endian; codes are those of an int8.
func appendVector(b []byte, r embedding.Record, codes []int8) []byte {
	for i, x := range r.Vector {
		switch r.Type {
		case embedding.Float16:
			b = binary.LittleEndian.AppendUint16(b, vector.Half(x))
		case embedding.Int8:
			b = append(b, byte(codes[i]))
		default:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// decodeVector sets the vector of a record whose type and scale are known.
func decodeVector(r *embedding.Record, b []byte, dim int) error {
	size := 4
	switch r.Type {
	case embedding.Float16:
		size = 2
	case embedding.Int8:
		size = 1
	}
	if len(b) != size*dim {
		return fmt.Errorf("dim is %d of %d bytes each, the value has %d bytes", dim, size, len(b))
	}
	if r.Type == embedding.Int8 {
		codes := make([]int8, dim)
		for i := range codes {
			codes[i] = int8(b[i])
		}
		return r.SetCodes(codes, r.Scale)
	}
	r.Vector = make([]float32, dim)
	for i := range r.Vector {
		if r.Type == embedding.Float16 {
			r.Vector[i] = vector.FromHalf(binary.LittleEndian.Uint16(b[2*i:]))
		} else {
			r.Vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		if x := float64(r.Vector[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("component %d is %v", i, x)
		}
	}
	return nil
}
