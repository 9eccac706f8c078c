// Package generate builds generations in memory, for benchmarks that compare them.
package generate

import (
	"context"
	"log/slog"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/generationtest"
)

// Build builds a generation of a source, and returns it with the embeddings of nodes.
func Build(ctx context.Context, cfg *config.Config, log *slog.Logger, src generation.Source,
	change func(*fit.Settings), ids, texts []string) (*generation.Generation, []float32, error) {
	g, err := BuildNext(ctx, cfg, log, &memstore.Store{}, src, change)
	if err != nil {
		return nil, nil, err
	}
	out := make([]float32, len(ids)*g.Encoder.Dim())
	return g, out, g.Encode(ids, texts, out)
}

// BuildNext builds the next generation in a store. The one before, if there is one, is its parent.
func BuildNext(ctx context.Context, cfg *config.Config, log *slog.Logger, store sink.Store, src generation.Source,
	change func(*fit.Settings)) (*generation.Generation, error) {
	request := wiring.RequestOf(cfg)
	request.Shards = 1
	if change != nil {
		change(&request.Settings)
	}
	w := &build.Worker{Means: work.Means{Store: store, Resources: wiring.ResourcesOf(cfg, nil, nil, log),
		Log: func(context.Context, map[int]int64) (work.Log, error) { return generationtest.LogOf(src), nil }}}
	doc, err := w.Build(ctx, request, stages.Finish)
	if err != nil {
		return nil, err
	}
	return generation.Open(ctx, store, doc, nil)
}
