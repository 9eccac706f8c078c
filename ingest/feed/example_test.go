package feed_test

import (
	"context"
	"log/slog"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
)

func Example() {
	ctx := context.Background()
	c, err := client.New(client.Options{Brokers: []string{"localhost:9092"}})
	if err != nil {
		return
	}
	config := feed.Config{
		Client: c, Shards: 8, Clock: time.Now, Log: slog.Default(),
		Topics: ingest.Topics{Nodes: "nodes", Edges: "edges", Embeddings: "embeddings", DeadLetters: "letters"},
		Mapping: decode.Mapping{
			Nodes: decode.NodeMapping{ID: "id", Text: []string{"text"}},
			Edges: decode.EdgeMapping{Src: "src", Dst: "dst"},
		},
		Limits: decode.Limits{RecordBytes: 1 << 20, TextBytes: 256 << 10, EdgesPerRecord: 10_000},
	}
	next := map[string]int64{"nodes": 120, "edges": 4500} // of the shard's newest manifest
	f, err := feed.Open(ctx, config, 3, next)
	if err != nil {
		return
	}
	defer f.Close()
	batch, err := f.Next(ctx, time.Second)
	if err != nil {
		return
	}
	_ = batch.Mutations // the shard applies them, and commits batch.Next with its window
}
