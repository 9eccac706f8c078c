package iceberg

import (
	"context"
	"iter"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
	"giantstream/sink/vectordb"
)

// ReadRows returns the rows of a snapshot of embeddings as records that have the attributes, too, without Places.
func ReadRows(ctx context.Context, meta table.Metadata, snapshot int64, store sink.Store,
	attributes []vectordb.Attribute) ([]vectordb.Record, error) {
	x := &Index{kind: embeddings, opts: Options{Attributes: attributes}, meta: meta, store: store,
		location: meta.Location(), numbers: map[string]uint32{}}
	if err := x.findColumns(meta); err != nil {
		return nil, err
	}
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
	var out []vectordb.Record
	for _, f := range data {
		at := int64(-1)
		for r, err := range readFile(ctx, x, f.FilePath(), embeddingFormat.Name, x.rowColumns()) {
			if err != nil {
				return nil, err
			}
			if at++; !gone[deletion{f.FilePath(), at}] {
				out = append(out, vectordb.Record{Values: r.attributes, Offset: r.Offset, Record: embedding.Record{
					NodeID: r.NodeID, Vector: r.Embedding, Generation: r.Generation, Seq: r.Seq}})
			}
		}
	}
	return out, nil
}

// Facts reads snapshots of rows. It reads each file once, as files never change.
type Facts struct {
	Store sink.Store

	entries map[string][]iceberg.DataFile // by manifest
	gone    map[string][]deletion         // by delete file
	rows    map[string][]rows.Committed   // by data file
}

// Read returns the rows of a snapshot.
func (r *Facts) Read(ctx context.Context, meta table.Metadata, snapshot int64) ([]rows.Committed, error) {
	if r.rows == nil {
		r.entries, r.gone = map[string][]iceberg.DataFile{}, map[string][]deletion{}
		r.rows = map[string][]rows.Committed{}
	}
	x := &Index{meta: meta, store: r.Store, location: meta.Location(), numbers: map[string]uint32{}}
	manifests, err := x.manifests(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	gone := map[deletion]bool{}
	var data []iceberg.DataFile
	for _, m := range manifests {
		files, err := once(r.entries, m.FilePath(), func() (files []iceberg.DataFile, err error) {
			entries, err := x.entries(ctx, m)
			for _, e := range entries {
				files = append(files, e.DataFile())
			}
			return files, err
		})
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if f.ContentType() == iceberg.EntryContentData {
				data = append(data, f)
				continue
			}
			deleted, err := once(r.gone, f.FilePath(), func() ([]deletion, error) {
				return collect(x.readDeletions(ctx, f.FilePath()))
			})
			if err != nil {
				return nil, err
			}
			for _, d := range deleted {
				gone[d] = true
			}
		}
	}
	var out []rows.Committed
	for _, f := range data {
		found, err := once(r.rows, f.FilePath(), func() ([]rows.Committed, error) {
			return collect(readFile(ctx, x, f.FilePath(), factFormat.Name, factColumns))
		})
		if err != nil {
			return nil, err
		}
		for at, row := range found {
			if !gone[deletion{f.FilePath(), int64(at)}] {
				out = append(out, row)
			}
		}
	}
	return out, nil
}

// once returns what is known of a path, and finds it out the first time.
func once[T any](known map[string]T, path string, find func() (T, error)) (T, error) {
	if v, ok := known[path]; ok {
		return v, nil
	}
	v, err := find()
	if err == nil {
		known[path] = v
	}
	return v, err
}

func collect[T any](all iter.Seq2[T, error]) (out []T, err error) {
	for v, err := range all {
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

var factColumns = []parquetio.Column[rows.Committed]{
	parquetio.Scalar("node_id", parquetio.String(), func(r *rows.Committed, v string) { r.NodeID = v }),
	parquetio.Scalar("text", parquetio.String(), func(r *rows.Committed, v string) { r.Text = v }),
	parquetio.Scalar("class", parquetio.String(), func(r *rows.Committed, v string) { r.Class = v }),
	parquetio.Scalar("event_time", parquetio.Int64(), func(r *rows.Committed, v int64) { r.EventTime = v }),
	parquetio.Scalar("seq", parquetio.Int64(), func(r *rows.Committed, v int64) { r.Seq = v }),
	parquetio.List("labels", parquetio.String(), func(r *rows.Committed, v []string) { r.Labels = v }),
	parquetio.List("link_ends", parquetio.String(), func(r *rows.Committed, v []string) { r.LinkEnds = v }),
	parquetio.List("link_kinds", parquetio.String(), func(r *rows.Committed, v []string) { r.LinkKinds = v }),
	parquetio.List("link_weights", parquetio.Float(), func(r *rows.Committed, v []float32) { r.LinkWeights = v }),
	parquetio.List("link_times", parquetio.Int64(), func(r *rows.Committed, v []int64) { r.LinkTimes = v }),
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
			for r, err := range readFile(ctx, x, f.FilePath(), embeddingFormat.Name, x.rowColumns()) {
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
