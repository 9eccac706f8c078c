package repartition_test

import (
	"context"
	"log/slog"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/repartition"
)

func Example() {
	c, err := client.New(client.Options{Brokers: []string{"localhost:9092"}})
	if err != nil {
		return
	}
	mapping := decode.NodeMapping{ID: "sku", Text: []string{"title"}}
	limits := decode.Limits{RecordBytes: 1 << 20, TextBytes: 256 << 10, EdgesPerRecord: 10_000}
	err = repartition.Run(context.Background(), repartition.Options{
		Client: c, DeadLetters: "shop.dead-letters", RecordBytes: limits.RecordBytes,
		Clock: time.Now, Log: slog.Default(),
		Routes: []repartition.Route{{From: "products", To: "shop.nodes.keyed", Group: "shop-products",
			Decoder: func() (*decode.Decoder, error) { return decode.Nodes(mapping, limits, 1) }}},
	})
	_ = err // of the context, or final
}
