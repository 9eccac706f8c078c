package generation

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// The memory limit decides where texts and features lie while a generation is
// built, and nothing else: every object comes out the same to the last byte.
func TestMemoryLimitChangesNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		nodes  int
		adjust func(*Settings)
	}{
		{"bag", 400, func(s *Settings) { s.Encoder, s.Epochs = "bag", 2 }},
		{"linear, several blocks", block + 500, func(*Settings) {}},
		{"ablation", 400, func(s *Settings) { s.LabelFeatures, s.Weighting = "text", "inverse_sqrt_degree" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			log := &commits{}
			for i, r := range topics(tt.nodes, topicCount) {
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
				build(t, b, 1, log, nil)
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

// A disk that fails during training is an error, never a worse encoder.
func TestUnreadableFeaturesFailTheTraining(t *testing.T) {
	log := &commits{}
	for _, r := range topics(400, topicCount) {
		log.add(1, r)
	}
	src, err := log.at(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for kind, broken := range map[string]func(*building) *spool{
		"linear": func(f *building) *spool { return f.projected.spool },
		"bag":    func(f *building) *spool { return f.features.spool },
	} {
		b := builder(nil)
		b.MemoryLimit, b.Settings.Epochs = 1, 1
		clock := newStageClock(nil, b.Now)
		c, err := loadCorpus(t.Context(), src, b.Settings.MaxDegree, b.share(textShare), clock)
		if err != nil {
			t.Fatal(err)
		}
		f := &building{Builder: b, ctx: t.Context(), doc: &Doc{Settings: b.Settings}, corpus: c, clock: clock}
		for _, stage := range []func() error{f.split, f.vectorize, f.project, f.cluster} {
			if err := stage(); err != nil {
				t.Fatal(err)
			}
		}
		if err := broken(f).file.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.train(kind, &checkpoints{f: f}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: got %v, want the error of the file", kind, err)
		}
		f.close()
	}
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
			t.Errorf("%d nodes of dimension %d: %d MiB, want %d to %d", tt.nodes, tt.dim, got/MiB, tt.min/MiB, tt.max/MiB)
		}
	}
}

// The projection is fitted to texts that say something.
func TestSampleLeavesOutEmptyTexts(t *testing.T) {
	f := &features{spool: newSpool(-1), cols: 3}
	for i := range 100 {
		var record []byte
		if i%2 == 0 { // feature 1, value i
			record = appendFloats(append(record, 1, 0, 0, 0), []float32{float32(i)})
		}
		if err := f.spool.append(record); err != nil {
			t.Fatal(err)
		}
	}
	for size, want := range map[int]int{10: 10, 50: 50, 99: 50} {
		x, err := f.sample(size, 7)
		if err != nil {
			t.Fatal(err)
		}
		if x.Rows != want || int(x.NNZ()) != want {
			t.Errorf("a sample of %d has %d rows with %d entries, want %d", size, x.Rows, x.NNZ(), want)
		}
		if !slices.IsSorted(x.Value) {
			t.Errorf("a sample of %d is not in the order of the nodes", size)
		}
	}
}
