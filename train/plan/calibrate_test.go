package plan

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

// communities is a commit log of one shard in memory: nodes in groups of ten, which share words and links. A third of
// them have an older row, too.
type communities struct{ nodes int }

func (communities) Cut() map[int]int64 { return map[int]int64{0: 2} }

func (c communities) Size(context.Context) (stages.Size, error) {
	return stages.Size{Rows: int64(c.nodes), Bytes: int64(c.nodes) * 100, Splits: []stages.Split{{Shard: 0, To: 2}}}, nil
}

func (c communities) Fingerprint() work.Fingerprint { return commitlog.NewGraphHasher() }

func (communities) Orders(context.Context, int) iter.Seq2[rows.Order, error] {
	return func(func(rows.Order, error) bool) {}
}

func (communities) Vectors(context.Context, int) iter.Seq2[rows.Vectors, error] {
	return func(func(rows.Vectors, error) bool) {}
}

func (c communities) Rows(context.Context, stages.Split) iter.Seq2[generation.Row, error] {
	const size, words = 10, 30
	id := func(i int) string { return fmt.Sprintf("node-%06d", i) }
	return func(yield func(generation.Row, error) bool) {
		r := rand.New(rand.NewPCG(1, 1))
		for i := range c.nodes {
			first := i / size * size
			var text strings.Builder
			for range 12 {
				fmt.Fprintf(&text, "w%dx%d ", i/size%20, r.IntN(words))
			}
			row := rows.Row{NodeID: id(i), Class: fmt.Sprint(i / size % 5), EventTime: 1, Text: text.String()}
			for k := first; k < first+size; k++ {
				if k != i {
					row.Labels = append(row.Labels, id(k))
				}
			}
			older := row
			older.Text, older.Labels = "older "+row.Text, nil
			if i%3 == 0 && !yield(generation.Row{Row: older, Seq: 1}, nil) {
				return
			}
			if !yield(generation.Row{Row: row, Seq: 2}, nil) {
				return
			}
		}
	}
}

// TestCalibrationKnowsEveryStage: rates of all stages are found, and explain the bytes that the builds moved, which no
// load on the machine changes.
func TestCalibrationKnowsEveryStage(t *testing.T) {
	race.SkipComputing(t)
	const size = 3000
	trial := Trial{Dir: t.TempDir(), Shards: 1, Machine: "test",
		Log: func(context.Context, func(sink.Store) sink.Store) (work.Log, error) { return communities{size}, nil },
		Settings: fit.Settings{Profile: "default", MaxDegree: 1000, ProjectionDim: 32, EmbeddingDim: 16,
			Weighting: "inverse_sqrt_degree", LabelFeatures: "pifa", LeafSize: 6, Branching: 3, Encoder: "linear",
			Seed: 1, Holdout: 0.1, EvalSeed: 1, ProbeRates: []float64{0.5}},
		Resources: fit.Resources{Workers: 2, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return time.Unix(0, 0) }},
	}
	var builds []*built
	for i, d := range divisions {
		b, err := trial.build(t.Context(), i, d)
		if err != nil {
			t.Fatal(err)
		}
		builds = append(builds, b)
	}
	c := calibration(trial, builds)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	texts := map[string]int{}
	for r, err := range (communities{size}).Rows(t.Context(), stages.Split{}) {
		if err != nil {
			t.Fatal(err)
		}
		texts[r.NodeID] = len(r.Text)
	}
	want := int64(0)
	for _, n := range texts {
		want += int64(n)
	}
	if g := c.Graph; g.Nodes != size || g.Links == 0 || g.TextBytes != want || g.Classes != 5 {
		t.Errorf("graph %+v, want %d nodes with %d bytes of text and 5 classes", g, size, want)
	}
	if r := c.Growth.Reach; r <= 0 || r > 1 {
		t.Errorf("a link within a group brings %.2f nodes", r)
	}
	if p := builds[len(builds)-1].plan; p.Partitions != 64 || p.Ranges != 32 || !p.Spread ||
		p.Sample != size/4 {
		t.Errorf("the last build was divided into %d partitions and %d ranges, with a sample of %d", p.Partitions,
			p.Ranges, p.Sample)
	}
	for i, b := range builds {
		var read, written, wantRead, wantWritten float64
		for name, got := range b.spent {
			if !b.counts(name) {
				continue
			}
			q := quantities(b.graph, c, b.plan, 1)
			read, wantRead = read+c.Stages[name].ReadBytes.costOf(q), wantRead+float64(got.read)
			written, wantWritten = written+c.Stages[name].WrittenBytes.costOf(q), wantWritten+float64(got.written)
			if got.shuffled > got.read {
				t.Errorf("%s: %d bytes of %d are shuffled", name, got.shuffled, got.read)
			}
		}
		// The few words of this graph do not grow by Heaps' law, and what count writes is most of what is written.
		if math.Abs(read/wantRead-1) > 0.1 || math.Abs(written/wantWritten-1) > 0.3 {
			t.Errorf("build %d: %.0f bytes read of %.0f, %.0f written of %.0f", i, read, wantRead, written, wantWritten)
		}
	}
}
