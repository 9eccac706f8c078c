package iceberg

import (
	"context"

	"github.com/apache/iceberg-go/table"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
)

// ReadRows returns the rows of a snapshot of embeddings, without Places.
func ReadRows(ctx context.Context, meta table.Metadata, snapshot int64, store sink.Store) ([]embedding.Record, error) {
	return readSnapshot(ctx, meta, snapshot, store, embeddingFormat.Name, columns)
}

// ReadFacts returns those of a snapshot of rows.
func ReadFacts(ctx context.Context, meta table.Metadata, snapshot int64, store sink.Store) ([]rows.Committed, error) {
	return readSnapshot(ctx, meta, snapshot, store, factFormat.Name, []parquetio.Column[rows.Committed]{
		parquetio.Scalar("node_id", parquetio.String(), func(r *rows.Committed, v string) { r.NodeID = v }),
		parquetio.Scalar("text", parquetio.String(), func(r *rows.Committed, v string) { r.Text = v }),
		parquetio.Scalar("class", parquetio.String(), func(r *rows.Committed, v string) { r.Class = v }),
		parquetio.Scalar("event_time", parquetio.Int64(), func(r *rows.Committed, v int64) { r.EventTime = v }),
		parquetio.Scalar("seq", parquetio.Int64(), func(r *rows.Committed, v int64) { r.Seq = v }),
		parquetio.List("labels", parquetio.String(), func(r *rows.Committed, v []string) { r.Labels = v }),
	})
}

func readSnapshot[T any](ctx context.Context, meta table.Metadata, snapshot int64, store sink.Store, format string,
	columns []parquetio.Column[T]) ([]T, error) {
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
	var out []T
	for _, f := range data {
		at := int64(-1)
		for r, err := range readFile(ctx, x, f.FilePath(), format, columns) {
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

// Generations returns those of main's rows, deleted ones too. seen keeps them by data file.
func Generations(ctx context.Context, meta table.Metadata, store sink.Store, seen map[string]int64) (map[int64]bool,
	error) {
	x := &Index{kind: embeddings, meta: meta, store: store, location: meta.Location(), numbers: map[string]uint32{}}
	data, _, err := x.files(ctx, meta.CurrentSnapshot().SnapshotID)
	if err != nil {
		return nil, err
	}
	out := map[int64]bool{}
	for _, f := range data {
		if _, ok := seen[f.FilePath()]; !ok {
			for r, err := range readFile(ctx, x, f.FilePath(), embeddingFormat.Name, columns) {
				if g, ok := seen[f.FilePath()]; err != nil || ok && g != r.Generation {
					return map[int64]bool{g: true, r.Generation: true}, err
				}
				seen[f.FilePath()] = r.Generation
			}
		}
		out[seen[f.FilePath()]] = true
	}
	return out, nil
}
