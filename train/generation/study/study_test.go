package study

import (
	"context"
	"iter"
	"log/slog"
	"testing"
	"time"

	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// source is a generation.Source in memory.
type source []rows.Row

func (source) Cut() map[int]int64 { return map[int]int64{0: 1} }
func (source) Hash() string       { return "" }

func (s source) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for _, r := range s {
			if !yield(generation.Row{Row: r, Seq: 1}, nil) {
				return
			}
		}
	}
}

// graphOf returns a small graph with topics.
func graphOf(nodes int) source { return graphtest.Rows(nodes, 8) }

func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Settings: fit.Settings{
			Profile: "default", MaxDegree: 1000, ProjectionDim: 32, EmbeddingDim: 16, Weighting: "sum", LabelFeatures: "pifa",
			LeafSize: 6, Branching: 3, Encoder: "linear", Seed: 1, Holdout: 0.05, EvalSeed: 1,
		},
		Resources: fit.Resources{Workers: 2, MemoryLimit: 1 << 30, Log: slog.New(slog.DiscardHandler), Now: time.Now},
	}
}
