package xrt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/internal/race"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
)

const bagDim = 16

// bagOf prepares a graph for training; pairs validate.
func bagOf(t testing.TB, g *train.Graph) (b Bag, pairs *eval.Pairs) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := tfidf.NewFitter(tfidf.DefaultOptions())
	check(err)
	f.AddAll(g.Texts, 0)
	model, err := f.Fit()
	check(err)
	x := model.TransformAll(g.Texts, 0)
	p, err := projection.Fit(x, bagDim, projection.Options{})
	check(err)
	projected := p.ApplyAll(x, 0)
	sketch, err := pifa.FromGraph(projected, bagDim, g.Neighbours, pifa.Sum, 0)
	check(err)
	labels := sketch.Normalized()
	features, err := labeltree.Dense(labels, bagDim)
	check(err)
	tree, err := labeltree.Build(features, labeltree.Options{Levels: []int{4, 16}})
	check(err)
	w, _, err := linear.Fit(t.Context(), linear.Data{
		Text: func(i int, out []float32) { copy(out, projected[i*bagDim:(i+1)*bagDim]) }, Rank: bagDim,
		Labels: labels, Dim: bagDim, Neighbours: g.Neighbours,
		Keys: numeric.Keys(g.IDs),
	}, linear.Options{}, nil)
	check(err)
	b = Bag{
		Set:      Set{Neighbours: g.Neighbours, Keys: numeric.Keys(g.IDs), Tree: tree, Labels: labels},
		Features: x, Dim: bagDim, Projection: p, Weights: w,
	}
	b.Instances, b.HeldOut = eval.HoldOut(g.Neighbours, b.Keys, 1000, 1)
	if len(b.HeldOut) > 0 {
		pairs = eval.DrawPairs(g.Neighbours, b.Keys, b.HeldOut, eval.PairsEach, 1)
	}
	return b, pairs
}

// trainedBag is what training a bag leaves.
type trainedBag struct {
	model   *bag.Model
	matcher *xmc.Matcher
	report  BagReport
}

func fitBag(t testing.TB, b Bag, pairs *eval.Pairs, h trainer.Hooks) trainedBag {
	t.Helper()
	if pairs != nil {
		h.Validate = pairs.Validate(b.Dim)
	}
	m, matcher, report, err := b.Train(t.Context(), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	return trainedBag{m, matcher, report}
}

func TestBagLearnsNeighbourhoods(t *testing.T) {
	race.SkipComputing(t)
	g := graphtest.Topics(800, 4, 10, 1)
	known, hidden := eval.Split(g, 0.1, 1)
	for _, c := range []struct {
		name     string
		schedule Schedule
	}{{"joint", Joint}, {"level by level", CoarseToFine}} {
		b, pairs := bagOf(t, known)
		b.Seed, b.Schedule = 1, c.schedule
		r := fitBag(t, b, pairs, trainer.Hooks{})
		m, err := eval.Links(r.model.EmbedAll(b.Features, 0), bagDim, known, hidden, eval.LinkOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		last := r.report.Epochs[len(r.report.Epochs)-1]
		if last.HeldOutAUC == 0 || r.report.HeldOut == 0 {
			t.Errorf("%s: report %+v", c.name, r.report)
		}
		if m.AUC < 0.75 {
			t.Errorf("%s: AUC of hidden edges %.3f, want 0.75", c.name, m.AUC)
		}
	}
}

func sameBits(a, b trainedBag) bool {
	if !slices.Equal(a.model.Vectors(), b.model.Vectors()) {
		return false
	}
	for l := range a.matcher.Weights {
		if !slices.Equal(a.matcher.Weights[l], b.matcher.Weights[l]) {
			return false
		}
	}
	return a.report.Best == b.report.Best && slices.Equal(a.report.Epochs, b.report.Epochs)
}

func TestBagHasTheSameBitsForAnyNumberOfWorkers(t *testing.T) {
	b, pairs := bagOf(t, graphtest.Topics(400, 4, 8, 1))
	b.Seed, b.Epochs, b.Batch, b.Links = 3, 2, 64, 0.3
	var want trainedBag
	for _, workers := range []int{1, 2, 5} {
		b.Workers = workers
		got := fitBag(t, b, pairs, trainer.Hooks{})
		if want.model == nil {
			want = got
		} else if !sameBits(got, want) {
			t.Errorf("%d workers give other weights than one", workers)
		}
	}
	b.Seed = 4
	if sameBits(fitBag(t, b, pairs, trainer.Hooks{}), want) {
		t.Error("another seed gives the same weights")
	}
}

// TestBagResumesAfterAnyStep stops a run after each of its steps and continues
// from the saved bytes.
func TestBagResumesAfterAnyStep(t *testing.T) {
	b, pairs := bagOf(t, graphtest.Topics(300, 3, 8, 1))
	b.Seed, b.Batch = 1, 100
	for _, c := range []struct {
		epochs, patience int
		schedule         Schedule
		links            float64
	}{{3, 0, Joint, 0}, {4, 1, CoarseToFine, 0}, {3, 0, Joint, 0.3}} {
		b.Epochs, b.Patience, b.Schedule, b.Links = c.epochs, c.patience, c.schedule, c.links
		var saved [][]byte
		want := fitBag(t, b, pairs, trainer.Hooks{
			Due: func(int64) bool { return true },
			Save: func(_ context.Context, step int64, s io.WriterTo) error {
				var b bytes.Buffer
				n, err := s.WriteTo(&b)
				if n != int64(b.Len()) || step != int64(len(saved)+1) {
					t.Errorf("checkpoint %d is of step %d; it says %d bytes, wrote %d", len(saved)+1, step, n, b.Len())
				}
				saved = append(saved, b.Bytes())
				return err
			},
		})
		if len(saved) < 6 {
			t.Fatalf("%d checkpoints; the test needs several epochs of several steps", len(saved))
		}
		for k, s := range saved {
			got := fitBag(t, b, pairs, trainer.Hooks{Resume: bytes.NewReader(s)})
			if got.report.Resumed != int64(k+1) || !sameBits(got, want) {
				t.Errorf("%v: resumed after step %d of %d, the weights differ", c.schedule, k+1, len(saved))
			}
		}
	}
}

func TestBagRefusesTheCheckpointOfAnotherRun(t *testing.T) {
	b, pairs := bagOf(t, graphtest.Topics(300, 3, 8, 1))
	b.Seed, b.Epochs = 1, 1
	var state bytes.Buffer
	fitBag(t, b, pairs, trainer.Hooks{
		Due:  func(step int64) bool { return step == 1 },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error { _, err := s.WriteTo(&state); return err },
	})
	seed := b
	seed.Seed = 2
	graph, _ := bagOf(t, graphtest.Topics(300, 3, 8, 2))
	graph.Seed, graph.Epochs = 1, 1
	for name, other := range map[string]Bag{"seed": seed, "graph": graph} {
		_, _, _, err := other.Train(t.Context(), trainer.Hooks{Resume: bytes.NewReader(state.Bytes())}, nil)
		if !errors.Is(err, trainer.ErrOtherRun) {
			t.Errorf("other %s: got %v, want ErrOtherRun", name, err)
		}
	}
}

func TestBagStops(t *testing.T) {
	b, _ := bagOf(t, graphtest.Topics(300, 3, 8, 1))
	ctx, cancel := context.WithCancel(t.Context())
	_, _, _, err := b.Train(ctx, trainer.Hooks{Due: func(int64) bool { cancel(); return false }}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	broken := errors.New("disk full")
	_, _, _, err = b.Train(t.Context(), trainer.Hooks{
		Due:  func(int64) bool { return true },
		Save: func(context.Context, int64, io.WriterTo) error { return broken },
	}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("failing checkpoint: got %v", err)
	}
}

func TestTinyGraphTrainsWithoutHoldingOut(t *testing.T) {
	b, pairs := bagOf(t, graphtest.Topics(60, 2, 6, 1))
	b.Epochs = 2
	r := fitBag(t, b, pairs, trainer.Hooks{})
	if pairs != nil || r.report.HeldOut != 0 || len(r.report.Epochs) != 2 || r.report.Best != 2 {
		t.Errorf("report %+v, want the last of two epochs", r.report)
	}
	if _, err := json.Marshal(r.report); err != nil {
		t.Errorf("the report does not go into JSON: %v", err)
	}
}

func TestBagChecksItsData(t *testing.T) {
	good, _ := bagOf(t, graphtest.Topics(60, 2, 6, 1))
	for name, spoil := range map[string]func(*Bag){
		"labels missing":    func(b *Bag) { b.Labels = nil },
		"no linear weights": func(b *Bag) { b.Weights = nil },
		"negative epochs":   func(b *Bag) { b.Epochs = -1 },
		"features of fewer nodes": func(b *Bag) {
			b.Features = &sparse.Matrix{Rows: 1, Cols: 1, Start: []int64{0, 0}}
		},
	} {
		b := good
		spoil(&b)
		if _, _, _, err := b.Train(t.Context(), trainer.Hooks{}, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// BenchmarkBag measures whole epochs, validation included.
func BenchmarkBag(b *testing.B) {
	d, pairs := bagOf(b, graphtest.Topics(4000, 8, 10, 1))
	d.Epochs = 2
	b.ReportAllocs()
	instances := 0
	for b.Loop() {
		r := fitBag(b, d, pairs, trainer.Hooks{})
		instances += r.report.Instances * len(r.report.Epochs)
	}
	b.ReportMetric(float64(instances)/b.Elapsed().Seconds(), "instances/s")
}

func TestPassesAreFewerWhereInstancesAreMany(t *testing.T) {
	for n, want := range map[int]int{1: 10, 30_000: 10, 40_000: 8, 60_000: 5, 100_000_000: 5} {
		if got := Passes(n); got != want {
			t.Errorf("%d passes over %d instances, want %d", got, n, want)
		}
	}
}
