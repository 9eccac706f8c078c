package generation

import (
	"bytes"
	"os"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// The memory limit decides where texts and features lie while a generation is
// built, and nothing else: every object comes out the same to the last byte.
func TestMemoryLimitChangesNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		nodes  int
		adjust func(*fit.Settings)
	}{
		{"bag", 400, func(s *fit.Settings) { s.Encoder, s.Epochs = "bag", 2 }},
		{"linear, several blocks", 4096 + 500, func(*fit.Settings) {}},
		{"ablation", 400, func(s *fit.Settings) { s.LabelFeatures, s.Weighting = "text", "inverse_sqrt_degree" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			log := &commits{}
			for i, r := range graphtest.Rows(tt.nodes, topicCount) {
				if i%50 == 0 {
					r.Text = "" // no features
				}
				log.add(1, r)
			}
			run := func(limit int64, workers int) map[string][]byte {
				store := &memstore.Store{}
				b := builder(store)
				b.MemoryLimit, b.Workers = limit, workers
				tt.adjust(&b.Settings)
				buildWith(t, b, 1, log, nil)
				return objects(t, store)
			}
			want, got := run(0, 2), run(1, 3)
			if len(want) < 8 || len(want) != len(got) {
				t.Errorf("%d objects without a limit, %d with one", len(want), len(got))
			}
			for key, data := range want {
				if !bytes.Equal(data, got[key]) {
					t.Errorf("%s differs", key)
				}
			}
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
				t.Errorf("temporary files left: %v (%v)", left, err)
			}
		})
	}
}

func objects(t *testing.T, store sink.Store) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for info, err := range store.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if all[info.Key], err = sink.ReadAll(t.Context(), store, info.Key); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestMemoryOfALargeGraph(t *testing.T) {
	const MiB = 1 << 20
	for _, tt := range []struct {
		nodes, links, dim int
		min, max          int64
	}{
		{0, 0, 256, 100 * MiB, 500 * MiB},
		{636_660, 5_514_520, 256, 1500 * MiB, 2048 * MiB}, // measured: docs/MEASUREMENTS.md
		{10_000_000, 100_000_000, 64, 5000 * MiB, 8000 * MiB},
	} {
		if got := needed(GraphStats{Nodes: tt.nodes, Links: tt.links}, tt.dim); got < tt.min || got > tt.max {
			t.Errorf("%d nodes of dimension %d: %d MiB, want %d to %d", tt.nodes, tt.dim, got/MiB, tt.min/MiB,
				tt.max/MiB)
		}
	}
}
