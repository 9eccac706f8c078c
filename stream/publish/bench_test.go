package publish

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"giantstream/sink/dirstore"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// BenchmarkFollow publishes windows of one row from a directory.
func BenchmarkFollow(b *testing.B) {
	store, err := dirstore.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	const manifests = 1000
	var head *commitlog.Manifest
	for seq := int64(1); seq <= manifests; seq++ {
		m := &commitlog.Manifest{Format: commitlog.ManifestFormat, Shard: shard, Seq: seq}
		key := func() string { return commitlog.RowKey(shard, seq, "w", 0) }
		m.Objects, m.Rows, err = commitlog.WriteObjects(b.Context(), store, rows.Nodes, key, 0, rows.WriteOptions{},
			func(yield func(rows.Row, error) bool) { yield(rows.Row{NodeID: fmt.Sprint(seq), Text: "text"}, nil) })
		var data []byte
		if err == nil {
			m.Follow(head)
			data, err = m.Encode("")
		}
		if err == nil {
			err = store.Create(b.Context(), commitlog.ManifestKey(shard, seq), data)
		}
		if err != nil {
			b.Fatal(err)
		}
		head = m
	}
	model := &Model{Generation: 1, Dim: 1, Encode: func(_, _ []string, _ []float32) error { return nil }}
	for b.Loop() {
		moveTo(b, store, commitlog.Published{Generation: 1})
		f := New(Options{Shard: shard, Store: store, Publisher: silent{}, Model: func() *Model { return model },
			Log: slog.New(slog.DiscardHandler)})
		if _, err := f.Step(b.Context()); err != nil || f.cursor.Seq != manifests {
			b.Fatalf("%+v, %v", f.cursor, err)
		}
	}
	b.ReportMetric(float64(b.N)*manifests/b.Elapsed().Seconds(), "manifests/s")
}

type silent struct{}

func (silent) Publish(context.Context, []embedding.Record) error { return nil }
