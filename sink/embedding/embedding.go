package embedding

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode"

	"giantstream/sink"
	"giantstream/sink/parquetio"
)

// Record is one embedding as it travels on the sink topic and in
// generations/<g>/embeddings/part-*.parquet. It names the generation (the model) and the manifest
// (shard and sequence number) it came from.
type Record struct {
	NodeID     string `json:"node_id"`
	Generation int64  `json:"generation"`
	// Space is the generation that began the space that the vector is in, 0 where that is Generation itself. Vectors
	// of one space can be compared.
	Space int64 `json:"space,omitempty"`
	// Vector is the embedding; nil in the record of a deleted node, and of one with the status
	// NoText.
	Vector []float32 `json:"embedding,omitempty"`
	// Status says what the vector was made from.
	Status Status `json:"status,omitempty"`
	// Type is how the numbers of Vector are stored, "" for Float32 (Format.Narrow). Those of an Int8
	// are whole numbers times Scale.
	Type  Type    `json:"type,omitempty"`
	Scale float32 `json:"scale,omitempty"`
	// EventTime is the event time of the node's newest change, in microseconds since the Unix
	// epoch.
	EventTime int64 `json:"event_time"`
	// Shard and Seq name the manifest that committed the row embedded here.
	Shard int   `json:"shard"`
	Seq   int64 `json:"seq"`
	// Deleted makes the record a tombstone.
	Deleted bool `json:"deleted,omitempty"`
}

// Status says what the vector of a record was made from.
type Status string

const (
	// FromText: the node's text, by the generation's encoder.
	FromText Status = ""
	// NoText: nothing. The node has no text, or none of it means anything to the encoder; the
	// record has no vector.
	NoText Status = "no_text"
	// FromNeighbours: the node has no text, and the vector is the mean of its neighbours'.
	FromNeighbours Status = "neighbours"
)

// inFiles is what FromText is called in Parquet, where a name reads better than an empty string.
const inFiles = "text"

// Valid says whether s is one of the constants.
func (s Status) Valid() bool { return s == FromText || s == NoText || s == FromNeighbours }

// SetVector takes over the vector that an encoder has made of the node's text. If the text has no
// letter and no number, or its vector has length 0 because the encoder knows nothing of the text,
// the status is NoText instead: no consumer should compute a cosine with such a vector.
func (r *Record) SetVector(text string, vector []float32) {
	r.Vector, r.Status = vector, FromText
	if Blank(text) || !slices.ContainsFunc(vector, func(x float32) bool { return x != 0 }) {
		r.Vector, r.Status = nil, NoText
	}
}

// Blank says whether a text has no letter and no number, and so no embedding of its own.
func Blank(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })
}

// Names and versions of the Parquet files, by type. "embeddings/1", which is read and no longer
// written, is float32 without a status.
const (
	formatFloat32 = "embeddings/2"
	formatFloat16 = "embeddings/2/float16"
	formatInt8    = "embeddings/2/int8"
)

// row is a Record of type Float32 as it stands in Parquet.
type row struct {
	NodeID    string    `parquet:"node_id"`
	Embedding []float32 `parquet:"embedding,list"`
	origin
}

// rowFloat16 is a Record of type Float16. Parquet's own 16-bit floats are foreign to many readers, so
// the numbers stand as 32-bit floats: there are at most 65,536, so that a dictionary makes two bytes of
// each. (With their bytes stored apart, BYTE_STREAM_SPLIT, they take 2.8 bytes.)
type rowFloat16 struct {
	NodeID    string    `parquet:"node_id"`
	Type      string    `parquet:"type,dict"`
	Embedding []float32 `parquet:"embedding,list" parquet-element:",dict"`
	origin
}

// rowInt8 is a Record of type Int8. A dictionary of at most 256 entries makes a byte of each code.
type rowInt8 struct {
	NodeID    string  `parquet:"node_id"`
	Type      string  `parquet:"type,dict"`
	Scale     float32 `parquet:"scale"`
	Embedding []int8  `parquet:"embedding,list" parquet-element:",dict"`
	origin
}

// origin is what rows of all types have.
type origin struct {
	Generation int64  `parquet:"generation"`
	Space      int64  `parquet:"space"`
	EventTime  int64  `parquet:"event_time,timestamp(microsecond)"`
	Shard      int32  `parquet:"shard"`
	Seq        int64  `parquet:"seq"`
	Status     string `parquet:"status,dict"`
}

// WriteParquet stores the records under key, after it has verified the row count of the finished
// file. All that have a vector must be of type t (Format.Narrow). A table of what is has no place for
// deleted nodes: their records are an error.
func WriteParquet(
	ctx context.Context, s sink.Store, key string, t Type, records iter.Seq2[Record, error],
) (parquetio.Info, error) {
	switch t {
	case Float16:
		return put(ctx, s, key, t, records, parquetio.Format[rowFloat16]{
			Name:       formatFloat16,
			Size:       func(r *rowFloat16) int { return 28 + len(r.NodeID) + 4*len(r.Embedding) },
			Generation: func(r *rowFloat16) int64 { return r.Generation },
		}, func(r Record, o origin) (rowFloat16, error) {
			return rowFloat16{NodeID: r.NodeID, Type: string(t), Embedding: r.Vector, origin: o}, nil
		})
	case Int8:
		return put(ctx, s, key, t, records, parquetio.Format[rowInt8]{
			Name:       formatInt8,
			Size:       func(r *rowInt8) int { return 32 + len(r.NodeID) + len(r.Embedding) },
			Generation: func(r *rowInt8) int64 { return r.Generation },
		}, func(r Record, o origin) (rowInt8, error) {
			codes, err := r.Codes()
			return rowInt8{NodeID: r.NodeID, Type: string(t), Scale: r.Scale, Embedding: codes, origin: o}, err
		})
	}
	return put(ctx, s, key, Float32, records, parquetio.Format[row]{
		Name:       formatFloat32,
		Size:       func(r *row) int { return 28 + len(r.NodeID) + 4*len(r.Embedding) },
		Generation: func(r *row) int64 { return r.Generation },
	}, func(r Record, o origin) (row, error) {
		return row{NodeID: r.NodeID, Embedding: r.Vector, origin: o}, nil
	})
}

// put stores the records as rows of one format.
func put[T any](ctx context.Context, s sink.Store, key string, t Type, records iter.Seq2[Record, error],
	format parquetio.Format[T], rowOf func(Record, origin) (T, error)) (parquetio.Info, error) {
	return parquetio.Put(ctx, s, key, format, func(yield func(T, error) bool) {
		for rec, err := range records {
			var r T
			switch {
			case err != nil:
			case rec.Deleted:
				err = fmt.Errorf("node %q is deleted: it has no embedding to write", rec.NodeID)
			case !rec.Status.Valid() || (rec.Status == NoText) != (len(rec.Vector) == 0):
				err = fmt.Errorf("node %q: %d dimensions do not go with the status %q", rec.NodeID, len(rec.Vector),
					rec.Status)
			case rec.Shard < 0 || rec.Shard > math.MaxInt32:
				err = fmt.Errorf("node %q: shard %d is out of range", rec.NodeID, rec.Shard)
			case rec.Status != NoText && rec.Type.bits() != t.bits():
				err = fmt.Errorf("node %q: an embedding of type %q in a file of %q", rec.NodeID, rec.Type, t)
			default:
				status := cmp.Or(string(rec.Status), inFiles)
				r, err = rowOf(rec, origin{rec.Generation, cmp.Or(rec.Space, rec.Generation), rec.EventTime,
					int32(rec.Shard), rec.Seq, status})
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	})
}

// ReadParquet yields the records of an object, in order, with bounded memory. The object is verified before
// the first record: sink.ErrDamaged if it is not what ref says. The sequence ends at the first error.
func ReadParquet(ctx context.Context, s sink.Store, ref sink.Ref) iter.Seq2[Record, error] {
	return parquetio.Get(ctx, s, ref, func(o sink.Object) (string, []parquetio.Column[Record], error) {
		format, err := parquetio.FormatName(o, o.Size())
		if format != formatFloat16 && format != formatInt8 {
			format = formatFloat32 // or what Get refuses
		}
		return format, columns(format), err
	})
}

func columns(format string) []parquetio.Column[Record] {
	i64 := parquetio.Int64()
	all := []parquetio.Column[Record]{
		parquetio.Scalar("node_id", parquetio.String(), func(r *Record, v string) { r.NodeID = v }),
		parquetio.Scalar("generation", i64, func(r *Record, v int64) { r.Generation = v }),
		parquetio.Scalar("space", i64, func(r *Record, v int64) {
			if v != r.Generation { // columns are read in this order
				r.Space = v
			}
		}).Optional(),
		parquetio.Scalar("event_time", i64, func(r *Record, v int64) { r.EventTime = v }),
		parquetio.Scalar("shard", parquetio.Int32(), func(r *Record, v int32) { r.Shard = int(v) }),
		parquetio.Scalar("seq", i64, func(r *Record, v int64) { r.Seq = v }),
		parquetio.Scalar("status", parquetio.String(), func(r *Record, v string) {
			if r.Status = Status(v); v == inFiles {
				r.Status = FromText
			}
		}).Optional(),
	}
	switch format {
	case formatFloat16:
		return append(all, parquetio.List("embedding", parquetio.Float(), func(r *Record, v []float32) {
			r.Type, r.Vector = Float16, v
		}))
	case formatInt8: // columns are read in this order: the scale comes first
		return append(all,
			parquetio.Scalar("scale", parquetio.Float(), func(r *Record, v float32) { r.Scale = v }),
			parquetio.List("embedding", parquetio.Int8(), func(r *Record, v []int8) { r.decode(v) }))
	}
	return append(all, parquetio.List("embedding", parquetio.Float(), func(r *Record, v []float32) { r.Vector = v }))
}
