package study

import (
	"log/slog"
	"testing"
	"time"

	"giantstream/train/generation/fit"
	"giantstream/train/generation/generationtest"
	"giantstream/train/internal/graphtest"
)

// graphOf returns a small graph with topics.
func graphOf(nodes int) generationtest.Source { return graphtest.Rows(nodes, 8) }

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
