package commitlog_test

import (
	"context"
	"fmt"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// Windows of a shard are committed; a cut shows the newest row of each node.
func Example() {
	ctx, store := context.Background(), &memstore.Store{}
	for seq, text := range []string{"first text", "second text"} {
		if err := commit(ctx, store, int64(seq+1), rows.Row{NodeID: "a", Text: text}); err != nil {
			panic(err)
		}
	}
	past := commitlog.Cut{0: 1} // manifest 1 of shard 0
	current, err := commitlog.CurrentCut(ctx, store, 1)
	if err != nil {
		panic(err)
	}
	for _, cut := range []commitlog.Cut{past, current} {
		for row, err := range cut.Newest(ctx, store, 0) {
			if err != nil {
				panic(err)
			}
			fmt.Println(row.NodeID, row.Text, "by manifest", row.Seq)
		}
	}
	// Output:
	// a first text by manifest 1
	// a second text by manifest 2
}

// commit does what a shard does with the rows of a window.
func commit(ctx context.Context, store sink.Store, seq int64, row rows.Row) error {
	key := func() string { return commitlog.RowKey(0, seq, "session", 0) }
	in := func(yield func(rows.Row, error) bool) { yield(row, nil) }
	objects, n, err := commitlog.WriteObjects(ctx, store, rows.Nodes, key, 0, rows.WriteOptions{}, in)
	if err != nil {
		return err
	}
	head, err := commitlog.Head(ctx, store, 0)
	if err != nil {
		return err
	}
	m := commitlog.Manifest{Format: commitlog.ManifestFormat, Seq: seq, Objects: objects, Rows: n}
	m.Follow(head)
	data, err := m.Encode("")
	if err != nil {
		return err
	}
	return store.Create(ctx, commitlog.ManifestKey(0, seq), data)
}
