package embedding

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/segmentio/kafka-go"
)

// Headers of binary records and of tombstones, with decimal values.
const (
	headerGeneration = "generation"
	headerDim        = "dim"
	headerEventTime  = "event_time"
	headerShard      = "shard"
	headerSeq        = "seq"
)

// headers returns what a record says besides its vector; dim 0 (a
// tombstone) is left out.
func headers(r Record, dim int) []kafka.Header {
	number := func(key string, n int64) kafka.Header {
		return kafka.Header{Key: key, Value: strconv.AppendInt(nil, n, 10)}
	}
	h := []kafka.Header{number(headerGeneration, r.Generation)}
	if dim > 0 {
		h = append(h, number(headerDim, int64(dim)))
	}
	return append(h, number(headerEventTime, r.EventTime), number(headerShard, int64(r.Shard)), number(headerSeq, r.Seq))
}

// parseHeaders fills r and returns the dimension. Headers that others have
// added (tracing) are ignored; a tombstone may have none at all.
func parseHeaders(r *Record, headers []kafka.Header) (dim int, err error) {
	for _, h := range headers {
		var n int64
		switch h.Key {
		case headerGeneration, headerDim, headerEventTime, headerShard, headerSeq:
			if n, err = strconv.ParseInt(string(h.Value), 10, 64); err != nil {
				return 0, fmt.Errorf("header %s: %w", h.Key, err)
			}
		}
		switch h.Key {
		case headerGeneration:
			r.Generation = n
		case headerDim:
			if n < 1 || n > MaxDim {
				return 0, fmt.Errorf("header dim: %d is not in 1..%d", n, MaxDim)
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
		}
	}
	return dim, nil
}

func appendVector(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func decodeVector(b []byte, dim int) ([]float32, error) {
	if len(b) != 4*dim {
		return nil, fmt.Errorf("dim is %d, the value has %d bytes", dim, len(b))
	}
	v := make([]float32, dim)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if math.IsNaN(float64(v[i])) || math.IsInf(float64(v[i]), 0) {
			return nil, fmt.Errorf("component %d is %v", i, v[i])
		}
	}
	return v, nil
}
