package xrt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"testing"

	"giantstream/featurize/artifact"
	"giantstream/train"
	"giantstream/train/internal/graphtest"
	"giantstream/train/xmc"
)

const testDim = 12

func TestTrainingLearnsNeighbourhoods(t *testing.T) {
	g := graphtest.Topics(600, 4, 10, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 1, 4, 16)
	for name, o := range map[string]Options{
		"joint":                      {},
		"coarse to fine":             {Schedule: CoarseToFine},
		"squared hinge":              {Heads: xmc.Options{Loss: xmc.SquaredHinge}},
		"cross-entropy, raw vectors": {Heads: xmc.Options{Loss: xmc.CrossEntropy}, Raw: true},
		"inherited heads":            {Schedule: CoarseToFine, Start: Inherit, Heads: xmc.Options{Clip: 1, Decay: 0.01}},
		"random heads":               {Start: Random, Epochs: 12},
		"heads at centroids":         {Start: Centroid, Heads: xmc.Options{Scale: 5}},
		"classifiers as heads":       {Schedule: CoarseToFine, Start: Linear, Heads: xmc.Options{Loss: xmc.SquaredHinge}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Rate, o.Epochs, o.Batch = 0.01, max(o.Epochs, 8), 32
			net := newWords(testDim, 1)
			r, err := Train(t.Context(), net, src, levels, o, Hooks{Judge: separation(g, testDim, 120)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			first, best := r.Report.Judged[0].Score, -1.0
			for _, j := range r.Report.Judged {
				best = max(best, j.Score)
			}
			if best < first+0.1 {
				t.Errorf("same topic nearer by %.3f before training and %.3f at best", first, best)
			}
			if r.Report.Level < 1 || len(r.Report.Curve) == 0 || len(r.Matcher.Weights) != 2 {
				t.Errorf("report %+v", r.Report)
			}
			// The network holds the weights that were judged best.
			again, err := separation(g, testDim, 120)(t.Context(), (&trainer{net: net}).embed)
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

func fit(t testing.TB, src Source, levels []xmc.Level, o Options, h Hooks) outcome {
	t.Helper()
	net := newWords(testDim, 1)
	r, err := Train(t.Context(), net, src, levels, o, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outcome{net.table, r.Matcher.Weights, r.Report.Step}
}

func TestSameBitsForAnyNumberOfWorkers(t *testing.T) {
	g := graphtest.Topics(300, 4, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 16, 256)
	want := fit(t, src, levels, Options{Epochs: 1, Workers: 1}, Hooks{})
	for _, workers := range []int{2, 5} {
		if !fit(t, src, levels, Options{Epochs: 1, Workers: workers}, Hooks{}).same(want) {
			t.Errorf("%d workers give other weights than one", workers)
		}
	}
}

// TestResumeAfterAnyStep stops a run after each of its steps and continues
// from the saved bytes.
func TestResumeAfterAnyStep(t *testing.T) {
	g := graphtest.Topics(150, 3, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 4, 16)
	for name, o := range map[string]Options{
		"joint":                       {Epochs: 3, Batch: 50, Rate: 0.01},
		"coarse to fine":              {Epochs: 5, Batch: 40, Rate: 0.01, Schedule: CoarseToFine, Patience: 1},
		"batches as long as an epoch": {Steps: []int64{3}, Batch: 150, Rate: 0.01},
	} {
		for _, judge := range []func(context.Context, func([]string, []float32) error) (float64, error){nil, separation(g, testDim, 60)} {
			var saved [][]byte
			want := fit(t, src, levels, o, Hooks{
				Judge: judge,
				Due:   func(int64) bool { return true },
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
			if len(saved) < 3 {
				t.Fatalf("%s: %d checkpoints", name, len(saved))
			}
			for k, b := range saved {
				if !fit(t, src, levels, o, Hooks{Judge: judge, Resume: bytes.NewReader(b)}).same(want) {
					t.Errorf("%s: resumed after step %d of %d, the weights differ", name, k+1, len(saved))
				}
			}
		}
	}
}

func TestCheckpointOfAnotherRunIsRefused(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 4)
	var b bytes.Buffer
	fit(t, src, levels, Options{Epochs: 1, Seed: 1}, Hooks{
		Due:  func(step int64) bool { return step == 1 },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error { _, err := s.WriteTo(&b); return err },
	})
	for name, c := range map[string]struct {
		b    []byte
		o    Options
		want error
	}{
		"other seed":   {b.Bytes(), Options{Epochs: 1, Seed: 2}, ErrOtherRun},
		"cut short":    {b.Bytes()[:b.Len()-9], Options{Epochs: 1, Seed: 1}, artifact.ErrCorrupt},
		"other format": {append([]byte("GSSTRANG"), b.Bytes()[8:]...), Options{Epochs: 1, Seed: 1}, artifact.ErrUnknown},
	} {
		_, err := Train(t.Context(), newWords(testDim, 1), src, levels, c.o, Hooks{Resume: bytes.NewReader(c.b)}, nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestUntrainedWeightsAreKeptIfTheyScoreBest(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 4)
	score := 1.0
	worse := func(context.Context, func([]string, []float32) error) (float64, error) { score--; return score, nil }
	net := newWords(testDim, 1)
	r, err := Train(t.Context(), net, src, levels, Options{Epochs: 9, Patience: 2}, Hooks{Judge: worse}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Report.Level != -1 || r.Report.Step != 0 || len(r.Report.Judged) != 3 {
		t.Errorf("report %+v, want the start kept and two epochs tried", r.Report)
	}
	if !slices.Equal(net.table, newWords(testDim, 1).table) {
		t.Error("the network does not have the weights it started with")
	}
}

func TestFaultsAreReported(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 4)
	broken := errors.New("no network")
	one := func(e Example) Source { return list{examples: []Example{e}} }
	for name, c := range map[string]struct {
		src    Source
		levels []xmc.Level
		o      Options
		want   error
	}{
		"no instances":         {list{}, levels, Options{}, ErrEmpty},
		"tree of one cluster":  {src, []xmc.Level{{Clusters: 1}}, Options{}, xmc.ErrNoLevels},
		"source fails":         {failing{src, broken}, levels, Options{}, broken},
		"too few levels":       {one(Example{}), levels, Options{}, ErrTargets},
		"cluster out of range": {one(Example{Targets: [][]int32{{4}}, Counts: [][]int32{{1}}}), levels, Options{}, ErrTargets},
		"clusters not sorted":  {one(Example{Targets: [][]int32{{2, 1}}, Counts: [][]int32{{1, 1}}}), levels, Options{}, ErrTargets},
		"counts missing":       {one(Example{Targets: [][]int32{{2}}, Counts: [][]int32{{}}}), levels, Options{}, ErrTargets},
		"rate far too high":    {src, levels, Options{Rate: 1e30, HeadRate: 1e30, Raw: true, Start: Random}, ErrDiverged},
	} {
		if _, err := Train(t.Context(), newWords(testDim, 1), c.src, c.levels, c.o, Hooks{}, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for name, o := range map[string]Options{
		"negative batch": {Batch: -1}, "negative rate": {Rate: -1}, "warm-up above one": {Warmup: 2},
		"steps for another schedule": {Steps: []int64{1, 2}}, "no steps": {Steps: []int64{0}}, "no epochs": {Epochs: math.NaN()},
	} {
		if _, err := Train(t.Context(), newWords(testDim, 1), src, levels, o, Hooks{}, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Train(ctx, newWords(testDim, 1), src, levels, Options{}, Hooks{Due: func(int64) bool { cancel(); return false }}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// failing yields one example of a source, then an error.
type failing struct {
	Source
	err error
}

func (f failing) Epoch(ctx context.Context, epoch int, skip int64) iter.Seq2[Example, error] {
	return func(yield func(Example, error) bool) {
		for e := range f.Source.Epoch(ctx, epoch, skip) {
			if !yield(e, nil) {
				return
			}
			break
		}
		yield(Example{}, f.err)
	}
}

func TestRateRisesAndFalls(t *testing.T) {
	o := Options{Warmup: 0.2}.withDefaults(1)
	var got []float64
	for s := range int64(10) {
		got = append(got, math.Round(o.fraction(s, 10)*1000)/1000)
	}
	if want := []float64{0.333, 0.667, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125}; !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v", got, want)
	}
}

func FuzzResume(f *testing.F) {
	g := graphtest.Topics(60, 2, 8, 1)
	src, levels := problem(f, g, newWords(2, 1), 4, 8)
	start := func(h Hooks) error {
		_, err := Train(f.Context(), newWords(2, 1), src, levels, Options{Steps: []int64{2}, Batch: 30}, h, nil)
		return err
	}
	err := start(Hooks{
		Judge: separation(g, 2, 10),
		Due:   func(int64) bool { return true },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error {
			var b bytes.Buffer
			_, err := s.WriteTo(&b)
			f.Add(b.Bytes())
			f.Add(b.Bytes()[:b.Len()/2])
			return err
		},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		net := newWords(2, 1)
		tr, err := newTrainer(net, src, levels, Options{Steps: []int64{2}, Batch: 30}, Hooks{Resume: bytes.NewReader(data)}, train.OrDiscard(nil))
		if err != nil {
			t.Fatal(err)
		}
		defer tr.close()
		err = tr.restore(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := (*state)(tr).WriteTo(&again); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(again.Bytes(), data) {
			t.Error("a state that was read is written otherwise")
		}
	})
}
