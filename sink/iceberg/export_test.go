package iceberg

import (
	"context"
	"maps"

	"github.com/apache/iceberg-go/table"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/parquetio"
)

// ReadRows returns the rows of a snapshot, without Places.
func ReadRows(ctx context.Context, meta table.Metadata, snapshot int64, store sink.Store) ([]embedding.Record, error) {
	x := &Index{meta: meta, store: store, location: meta.Location(), numbers: map[string]uint32{}}
	data, deletes, err := x.files(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	gone := map[deletion]bool{}
	for _, f := range deletes {
		for d, err := range x.readDeletions(ctx, f.FilePath()) {
			if err != nil {
				return nil, err
			}
			gone[d] = true
		}
	}
	var out []embedding.Record
	for _, f := range data {
		at := int64(-1)
		for r, err := range readFile(ctx, x, f.FilePath(), dataFormat.Name, columns) {
			if err != nil {
				return nil, err
			}
			if at++; !gone[deletion{f.FilePath(), at}] {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

var columns = []parquetio.Column[embedding.Record]{
	parquetio.Scalar("node_id", parquetio.String(), func(r *embedding.Record, v string) { r.NodeID = v }),
	parquetio.Scalar("generation", parquetio.Int64(), func(r *embedding.Record, v int64) { r.Generation = v }),
	parquetio.Scalar("seq", parquetio.Int64(), func(r *embedding.Record, v int64) { r.Seq = v }),
	parquetio.List("embedding", parquetio.Float(), func(r *embedding.Record, v []float32) { r.Vector = v }),
}

var _ = maps.Clone[map[int]int]
