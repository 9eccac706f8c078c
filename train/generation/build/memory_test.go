package build

import (
	"bytes"
	"os"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// The memory limit decides where texts and features lie while a generation is
// built, and nothing else: every object comes out the same to the last byte.
func TestMemoryLimitChangesNothing(t *testing.T) {
	race.SkipComputing(t)
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
