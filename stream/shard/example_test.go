package shard_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/shard"
)

// One window of a directed graph: two nodes and an edge. A worker would call Run instead, with a
// feed that starts at Next.
func Example() {
	ctx, store := context.Background(), &memstore.Store{}
	dir, err := os.MkdirTemp("", "state-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // example
	s, err := shard.Open(ctx, shard.Options{
		Pipeline: "example", Shard: 0, Shards: 1, Dir: dir, Store: store,
		Topics: shard.Topics{Nodes: "nodes", Edges: "edges"},
		Window: shard.Window{Changes: 1000, Bytes: 1 << 20, Time: time.Second},
	})
	if err != nil {
		panic(err)
	}
	defer s.Close() //nolint:errcheck // example

	batch := mutation.Batch{Next: map[string]int64{"nodes": 2, "edges": 1}}
	batch.State(mutation.Nodes, 0, mutation.Mutation{Op: mutation.PutNode, ID: "a", Text: "first",
		Version: mutation.Version{EventTime: 1, Offset: 0}})
	batch.State(mutation.Nodes, 1, mutation.Mutation{Op: mutation.PutNode, ID: "b", Text: "second",
		Version: mutation.Version{EventTime: 2, Offset: 1}})
	batch.State(mutation.Edges, 0, mutation.Mutation{Op: mutation.PutEdge, ID: "a", Other: "b",
		Version: mutation.Version{EventTime: 3, Rank: 1, Offset: 0}})
	if err = s.Apply(ctx, batch); err != nil {
		panic(err)
	}
	m, err := s.Commit(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("manifest", m.Seq, "covers", m.Next)

	cut, err := commitlog.CurrentCut(ctx, store, 1)
	if err != nil {
		panic(err)
	}
	for row, err := range cut.Newest(ctx, store, 0) {
		if err != nil {
			panic(err)
		}
		fmt.Println(row.NodeID, row.Text, row.Labels)
	}
	// Output:
	// manifest 1 covers map[edges:1 nodes:2]
	// a first [b]
	// b second []
}
