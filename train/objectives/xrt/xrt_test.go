package xrt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"giantstream/internal/artifact"
	"giantstream/internal/race"
	"giantstream/train"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
)

const testDim = 12

func TestTrainingLearnsNeighbourhoods(t *testing.T) {
	race.SkipComputing(t)
	g := graphtest.Topics(600, 4, 10, 1)
	set := problem(t, g, newWords(g, testDim, 1), 1, 4, 16)
	for name, o := range map[string]Options{
		"joint":                      {},
		"coarse to fine":             {Schedule: CoarseToFine},
		"squared hinge":              {Heads: xmc.Options{Loss: xmc.SquaredHinge}},
		"cross-entropy, raw vectors": {Heads: xmc.Options{Loss: xmc.CrossEntropy}, Raw: true},
		"inherited heads": {Schedule: CoarseToFine, Start: Inherit,
			Heads: xmc.Options{Clip: 1, Decay: 0.01}},
		"random heads":       {Start: Random, Epochs: 12},
		"heads at centroids": {Start: Centroid, Heads: xmc.Options{Scale: 5}},
		"classifiers as heads": {Schedule: CoarseToFine, Start: Linear,
			Heads: xmc.Options{Loss: xmc.SquaredHinge}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Rate, o.Epochs, o.Batch = 0.01, max(o.Epochs, 8), 32
			net := newWords(g, testDim, 1)
			r, err := Train(t.Context(), net, set, o, trainer.Hooks{Validate: separation(g, testDim, 120)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			first, best := r.Report.Scores[0].Score, -1.0
			for _, j := range r.Report.Scores {
				best = max(best, j.Score)
			}
			if best < first+0.1 {
				t.Errorf("same topic nearer by %.3f before training and %.3f at best", first, best)
			}
			if r.Report.Level < 1 || len(r.Report.Curve) == 0 || len(r.Matcher.Weights) != 2 {
				t.Errorf("report %+v", r.Report)
			}
			// The network holds the weights that scored best.
			again, err := separation(g, testDim, 120)(t.Context(), embedder(net))
			if err != nil || again != best {
				t.Errorf("the returned weights score %.6f, the best ones %.6f (%v)", again, best, err)
			}
		})
	}
}

type outcome struct {
	table []float32
	heads [][]float32
	best  int64
}

func (a outcome) same(b outcome) bool {
	ok := slices.Equal(a.table, b.table) && a.best == b.best
	for l := range a.heads {
		ok = ok && slices.Equal(a.heads[l], b.heads[l])
	}
	return ok
}

func fit(t testing.TB, g *train.Graph, set Set, o Options, h trainer.Hooks) outcome {
	t.Helper()
	net := newWords(g, testDim, 1)
	r, err := Train(t.Context(), net, set, o, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outcome{net.table, r.Matcher.Weights, r.Report.Step}
}

func TestSameBitsForAnyNumberOfWorkers(t *testing.T) {
	g := graphtest.Topics(300, 4, 8, 1)
	set := problem(t, g, newWords(g, testDim, 1), 16, 256)
	want := fit(t, g, set, Options{Epochs: 1, Workers: 1}, trainer.Hooks{})
	for _, workers := range []int{2, 5} {
		if !fit(t, g, set, Options{Epochs: 1, Workers: workers}, trainer.Hooks{}).same(want) {
			t.Errorf("%d workers give other weights than one", workers)
		}
	}
}

// TestResumeAfterAnyStep stops a run after each of its steps and continues
// from the saved bytes.
func TestResumeAfterAnyStep(t *testing.T) {
	g := graphtest.Topics(150, 3, 8, 1)
	set := problem(t, g, newWords(g, testDim, 1), 4, 16)
	for name, o := range map[string]Options{
		"joint":                       {Epochs: 3, Batch: 50, Rate: 0.01},
		"coarse to fine":              {Epochs: 5, Batch: 40, Rate: 0.01, Schedule: CoarseToFine, Patience: 1},
		"batches as long as an epoch": {Steps: []int64{3}, Batch: 150, Rate: 0.01},
	} {
		for _, validate := range []trainer.Validate{nil, separation(g, testDim, 60)} {
			var saved [][]byte
			want := fit(t, g, set, o, trainer.Hooks{
				Validate: validate,
				Due:      func(int64) bool { return true },
				Save: func(_ context.Context, step int64, s io.WriterTo) error {
					var b bytes.Buffer
					n, err := s.WriteTo(&b)
					if n != int64(b.Len()) || step != int64(len(saved)+1) {
						t.Errorf("checkpoint %d is of step %d; it says %d bytes, wrote %d",
							len(saved)+1, step, n, b.Len())
					}
					saved = append(saved, b.Bytes())
					return err
				},
			})
			if len(saved) < 3 {
				t.Fatalf("%s: %d checkpoints", name, len(saved))
			}
			for k, b := range saved {
				if !fit(t, g, set, o, trainer.Hooks{Validate: validate, Resume: bytes.NewReader(b)}).same(want) {
					t.Errorf("%s: resumed after step %d of %d, the weights differ", name, k+1, len(saved))
				}
			}
		}
	}
}

func TestCheckpointOfAnotherRunIsRefused(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	set := problem(t, g, newWords(g, testDim, 1), 4)
	var b bytes.Buffer
	fit(t, g, set, Options{Epochs: 1, Seed: 1}, trainer.Hooks{
		Due:  func(step int64) bool { return step == 1 },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error { _, err := s.WriteTo(&b); return err },
	})
	for name, c := range map[string]struct {
		b    []byte
		o    Options
		want error
	}{
		"other seed": {b.Bytes(), Options{Epochs: 1, Seed: 2}, trainer.ErrOtherRun},
		"cut short":  {b.Bytes()[:b.Len()-9], Options{Epochs: 1, Seed: 1}, artifact.ErrCorrupt},
		"other format": {append([]byte("GSSTRANG"), b.Bytes()[8:]...), Options{Epochs: 1, Seed: 1},
			artifact.ErrUnknown},
	} {
		_, err := Train(t.Context(), newWords(g, testDim, 1), set, c.o, trainer.Hooks{Resume: bytes.NewReader(c.b)},
			nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestUntrainedWeightsAreKeptIfTheyScoreBest(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	set := problem(t, g, newWords(g, testDim, 1), 4)
	score := 1.0
	worse := func(context.Context, trainer.Embed) (float64, error) { score--; return score, nil }
	net := newWords(g, testDim, 1)
	r, err := Train(t.Context(), net, set, Options{Epochs: 9, Patience: 2}, trainer.Hooks{Validate: worse}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Report.Level != -1 || r.Report.Step != 0 || len(r.Report.Scores) != 3 {
		t.Errorf("report %+v, want the start kept and two epochs tried", r.Report)
	}
	if !slices.Equal(net.table, newWords(g, testDim, 1).table) {
		t.Error("the network does not have the weights it started with")
	}
}

func TestFaultsAreReported(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	set := problem(t, g, newWords(g, testDim, 1), 4)
	broken := errors.New("no disk")
	single := set
	single.Tree = problem(t, g, newWords(g, testDim, 1), 1).Tree
	none := set
	none.Instances = nil
	for name, c := range map[string]struct {
		net  train.Network
		set  Set
		o    Options
		want error
	}{
		"no instances":        {newWords(g, testDim, 1), none, Options{}, trainer.ErrEmpty},
		"tree of one cluster": {newWords(g, testDim, 1), single, Options{}, xmc.ErrNoLevels},
		"network fails":       {failing{newWords(g, testDim, 1), broken}, set, Options{}, broken},
		"rate far too high": {newWords(g, testDim, 1), set,
			Options{Rate: 1e30, HeadRate: 1e30, Raw: true, Start: Random},
			train.ErrDiverged},
	} {
		if _, err := Train(t.Context(), c.net, c.set, c.o, trainer.Hooks{}, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for name, o := range map[string]Options{
		"negative batch": {Batch: -1}, "negative rate": {Rate: -1}, "warm-up above one": {Warmup: 2},
		"steps for another schedule": {Steps: []int64{1, 2}}, "no steps": {Steps: []int64{0}},
		"no epochs": {Epochs: math.NaN()},
	} {
		if _, err := Train(t.Context(), newWords(g, testDim, 1), set, o, trainer.Hooks{}, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Train(ctx, newWords(g, testDim, 1), set, Options{},
		trainer.Hooks{Due: func(int64) bool { cancel(); return false }}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// failing is a network that cannot read its texts.
type failing struct {
	*words
	err error
}

func (f failing) Forward([]int32, []uint64, []float32) error { return f.err }

// embedder returns the embeddings of net.
func embedder(net train.Network) trainer.Embed {
	return func(instances []int32, out []float32) error {
		err := net.Forward(instances, nil, out)
		for z := range slices.Chunk(out, net.Dim()) {
			numeric.Normalize(z)
		}
		return err
	}
}
