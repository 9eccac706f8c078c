package embedding

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"

	"giantstream/sink"
	"giantstream/sink/parquetio"
)

// ParquetFormat is the name and version of the Parquet files.
const ParquetFormat = "embeddings/1"

// Info describes a written object.
type Info = parquetio.Info

// row is a Record as it stands in Parquet.
type row struct {
	NodeID     string    `parquet:"node_id"`
	Embedding  []float32 `parquet:"embedding,list"`
	Generation int64     `parquet:"generation"`
	EventTime  int64     `parquet:"event_time,timestamp(microsecond)"`
	Shard      int32     `parquet:"shard"`
	Seq        int64     `parquet:"seq"`
}

// WriteParquet stores the records under key, after it has verified the row
// count of the finished file. A table of what is has no place for deleted
// nodes: their records are an error.
func WriteParquet(ctx context.Context, s sink.Store, key string, records iter.Seq2[Record, error]) (Info, error) {
	format := parquetio.Format[row]{
		Name:       ParquetFormat,
		Size:       func(r *row) int { return 28 + len(r.NodeID) + 4*len(r.Embedding) },
		Generation: func(r *row) int64 { return r.Generation },
	}
	return parquetio.Put(ctx, s, key, format, func(yield func(row, error) bool) {
		for rec, err := range records {
			r := row{NodeID: rec.NodeID, Embedding: rec.Vector, Generation: rec.Generation,
				EventTime: rec.EventTime, Shard: int32(rec.Shard), Seq: rec.Seq}
			switch {
			case err != nil:
			case rec.Deleted:
				err = fmt.Errorf("node %q is deleted: it has no embedding to write", rec.NodeID)
			case rec.Shard < 0 || rec.Shard > math.MaxInt32:
				err = fmt.Errorf("node %q: shard %d is out of range", rec.NodeID, rec.Shard)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	})
}

// ReadParquet yields the records of the object under key, in order, with
// bounded memory. The sequence ends at the first error.
func ReadParquet(ctx context.Context, s sink.Store, key string) iter.Seq2[Record, error] {
	return parquetio.Get(ctx, s, key, ParquetFormat, columns())
}

// ReadParquetFrom is ReadParquet for a file of size bytes.
func ReadParquetFrom(r io.ReaderAt, size int64) iter.Seq2[Record, error] {
	return parquetio.Read(r, size, ParquetFormat, columns())
}

func columns() []parquetio.Column[Record] {
	i64 := parquetio.Int64()
	return []parquetio.Column[Record]{
		parquetio.Scalar("node_id", parquetio.String(), func(r *Record, v string) { r.NodeID = v }),
		parquetio.List("embedding", parquetio.Float(), func(r *Record, v []float32) { r.Vector = v }),
		parquetio.Scalar("generation", i64, func(r *Record, v int64) { r.Generation = v }),
		parquetio.Scalar("event_time", i64, func(r *Record, v int64) { r.EventTime = v }),
		parquetio.Scalar("shard", parquetio.Int32(), func(r *Record, v int32) { r.Shard = int(v) }),
		parquetio.Scalar("seq", i64, func(r *Record, v int64) { r.Seq = v }),
	}
}
