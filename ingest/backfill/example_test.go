package backfill_test

import (
	"context"
	"fmt"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/sink/dirstore"
)

func Example() {
	ctx := context.Background()
	nodes, err := backfill.Files("nodes/*.jsonl.gz")
	if err != nil {
		return
	}
	store, err := dirstore.Open("/var/lib/exports")
	if err != nil {
		return
	}
	edges, err := backfill.Objects(ctx, store, "edges/*.parquet")
	if err != nil {
		return
	}
	c, err := client.New(client.Options{Brokers: []string{"localhost:9092"}})
	if err != nil {
		return
	}
	stats, err := backfill.Run(ctx, backfill.Options{
		Client: c, Sources: backfill.Sources{Nodes: nodes, Edges: edges}, Checkpoint: "backfill.json", Clock: time.Now,
		Topics: ingest.Topics{Nodes: "nodes", Edges: "edges", Embeddings: "embeddings", DeadLetters: "letters"},
		Mapping: decode.Mapping{
			Nodes: decode.NodeMapping{ID: "id", Text: []string{"text"}},
			Edges: decode.EdgeMapping{Src: "src", Dst: "dst"},
		},
		Limits: decode.Limits{RecordBytes: 1 << 20, TextBytes: 256 << 10, EdgesPerRecord: 10_000},
	})
	fmt.Println(stats.Nodes, "nodes and", stats.Edges, "edges are acknowledged", err)
}
