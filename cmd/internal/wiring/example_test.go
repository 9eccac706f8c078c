package wiring_test

import (
	"context"
	"log/slog"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/ambient"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/work"
)

// What a command does with its configuration.
func Example() {
	cfg, err := config.Load("pipeline.yaml", nil)
	if err != nil {
		panic(err)
	}
	if err := wiring.Check(&cfg); err != nil { // what only the packages below can find
		panic(err)
	}
	wiring.Limit(&cfg) // memory and cores of this process
	store, err := wiring.OpenStore(context.Background(), &cfg)
	if err != nil {
		panic(err)
	}
	_ = build.Worker{Means: work.Means{Store: store,
		Resources: wiring.ResourcesOf(&cfg, nil, ambient.OrDiscard(nil), slog.Default())}}
	_ = wiring.RequestOf(&cfg)
}
