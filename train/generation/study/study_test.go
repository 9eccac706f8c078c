package study

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"giantstream/train/generation"
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

// unread is a graph that is not to be read.
type unread struct{ generation.Source }

func TestEncodersAreCheckedBeforeTheGraphIsRead(t *testing.T) {
	for kind, want := range map[string]string{"magic": `unknown encoder "magic"`, "bert": "needs a model to start from"} {
		_, err := Compare(t.Context(), options(t), unread{}, []string{"lsa", "linear", kind}, []uint64{1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
}
