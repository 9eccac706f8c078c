package bag

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"giantstream/featurize/artifact"
	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/train"
	"giantstream/train/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/linear"
)

const testDim = 16

// data prepares a graph for training.
func data(t testing.TB, g *train.Graph) Data {
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
	p, err := projection.Fit(x, testDim, projection.Options{})
	check(err)
	projected := p.ApplyAll(x, 0)
	sketch, err := pifa.FromGraph(projected, testDim, g.Neighbours, pifa.Sum, 0)
	check(err)
	labels := sketch.Normalized()
	features, err := labeltree.Dense(labels, testDim)
	check(err)
	tree, err := labeltree.Build(features, labeltree.Options{Levels: []int{4, 16}})
	check(err)
	w, _, err := linear.Fit(t.Context(), linear.Data{
		Text: func(i int, out []float32) { copy(out, projected[i*testDim:(i+1)*testDim]) }, Rank: testDim, Labels: labels, Dim: testDim, Neighbours: g.Neighbours,
	}, linear.Options{}, nil)
	check(err)
	return Data{
		Features: x, Neighbours: g.Neighbours, Tree: tree, Labels: labels, Dim: testDim, Projection: p, Weights: w,
	}
}

func fit(t testing.TB, d Data, o Options, c Checkpoints) *Result {
	t.Helper()
	r, err := Train(t.Context(), d, o, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStartIsTheLinearEncoder(t *testing.T) {
	g := graphtest.Topics(150, 3, 8, 1)
	d := data(t, g)
	_, cols := d.Features.Size()
	tab := newTable(chooseFeatures(d.Features, 1<<20), cols, d.Dim)
	tab.linearStart(d.Projection, d.Weights, 0)
	x, want, got := make([]float32, testDim), make([]float32, testDim), make([]float32, testDim)
	for i := range g.Len() {
		d.Projection.Apply(d.Features.Row(i), x)
		linear.Project(d.Weights, x, want)
		tab.embed(d.Features.Row(i), got)
		for k := range want {
			if math.Abs(float64(got[k]-want[k])) > 1e-4 {
				t.Fatalf("node %d: bag starts at %v, linear gives %v", i, got, want)
			}
		}
	}
}

func TestTrainingLearnsNeighbourhoods(t *testing.T) {
	g := graphtest.Topics(800, 4, 10, 1)
	known, hidden := eval.Split(g, 0.1, 1)
	d := data(t, known)
	auc := func(o Options) float64 {
		r := fit(t, d, o, Checkpoints{})
		m, err := eval.Links(r.Model.EmbedAll(d.Features, 0), testDim, known, hidden, eval.LinkOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		last := r.Report.Epochs[len(r.Report.Epochs)-1]
		if last.HeldOutAUC == 0 || r.Report.HeldOut == 0 || len(r.Report.Levels) != 2 {
			t.Errorf("%+v: report %+v", o, r.Report)
		}
		return m.AUC
	}
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"joint from the linear solution", Options{Seed: 1}},
		{"level by level", Options{Seed: 1, Schedule: CoarseToFine}},
		{"from random vectors", Options{Seed: 1, Init: InitRandom, Epochs: 20, TableRate: 0.1}},
	} {
		if a := auc(c.o); a < 0.75 {
			t.Errorf("%s: AUC of hidden edges %.3f, want 0.75", c.name, a)
		}
	}
}

func sameBits(a, b *Result) bool {
	if !slices.Equal(a.Model.Vectors(), b.Model.Vectors()) {
		return false
	}
	for l := range a.Matcher.Weights {
		if !slices.Equal(a.Matcher.Weights[l], b.Matcher.Weights[l]) {
			return false
		}
	}
	return a.Report.Best == b.Report.Best && slices.Equal(a.Report.Epochs, b.Report.Epochs)
}

func TestSameBitsForAnyNumberOfWorkers(t *testing.T) {
	d := data(t, graphtest.Topics(400, 4, 8, 1))
	o := Options{Seed: 3, Epochs: 2, Batch: 64}
	var want *Result
	for _, workers := range []int{1, 2, 5} {
		o.Workers = workers
		got := fit(t, d, o, Checkpoints{})
		if want == nil {
			want = got
		} else if !sameBits(got, want) {
			t.Errorf("%d workers give other weights than one", workers)
		}
	}
	o.Seed = 4
	if sameBits(fit(t, d, o, Checkpoints{}), want) {
		t.Error("another seed gives the same weights")
	}
}

// TestResumeAfterAnyStep stops a run after each of its steps and continues
// from the saved bytes.
func TestResumeAfterAnyStep(t *testing.T) {
	d := data(t, graphtest.Topics(300, 3, 8, 1))
	for _, o := range []Options{
		{Seed: 1, Epochs: 3, Batch: 100},
		{Seed: 1, Epochs: 4, Batch: 100, Schedule: CoarseToFine, Patience: 1},
	} {
		var saved [][]byte
		want := fit(t, d, o, Checkpoints{
			Due: func(int64) bool { return true },
			Save: func(_ context.Context, s *State) error {
				var b bytes.Buffer
				n, err := s.WriteTo(&b)
				if n != int64(b.Len()) {
					t.Errorf("WriteTo says %d bytes, wrote %d", n, b.Len())
				}
				saved = append(saved, b.Bytes())
				return err
			},
		})
		if len(saved) < 6 {
			t.Fatalf("%d checkpoints; the test needs several epochs of several steps", len(saved))
		}
		for k, b := range saved {
			s, err := ReadState(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if s.Step() != int64(k+1) {
				t.Errorf("checkpoint %d is of step %d", k+1, s.Step())
			}
			if got := fit(t, d, o, Checkpoints{Resume: s}); !sameBits(got, want) {
				t.Errorf("%v: resumed after step %d of %d, the weights differ", o.Schedule, k+1, len(saved))
			}
		}
	}
}

func TestCheckpointOfAnotherRunIsRefused(t *testing.T) {
	d := data(t, graphtest.Topics(300, 3, 8, 1))
	var state bytes.Buffer
	fit(t, d, Options{Seed: 1, Epochs: 1}, Checkpoints{
		Due:  func(step int64) bool { return step == 1 },
		Save: func(_ context.Context, s *State) error { _, err := s.WriteTo(&state); return err },
	})
	s, err := ReadState(&state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Train(t.Context(), d, Options{Seed: 2, Epochs: 1}, Checkpoints{Resume: s}, nil); !errors.Is(err, ErrOtherRun) {
		t.Errorf("other seed: got %v, want ErrOtherRun", err)
	}
	other := data(t, graphtest.Topics(300, 3, 8, 2))
	if _, err := Train(t.Context(), other, Options{Seed: 1, Epochs: 1}, Checkpoints{Resume: s}, nil); !errors.Is(err, ErrOtherRun) {
		t.Errorf("other graph: got %v, want ErrOtherRun", err)
	}
}

func TestTrainStops(t *testing.T) {
	d := data(t, graphtest.Topics(300, 3, 8, 1))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Train(ctx, d, Options{}, Checkpoints{Due: func(int64) bool { cancel(); return false }}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	broken := errors.New("disk full")
	_, err = Train(t.Context(), d, Options{}, Checkpoints{
		Due:  func(int64) bool { return true },
		Save: func(context.Context, *State) error { return broken },
	}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("failing checkpoint: got %v", err)
	}
}

func TestTinyGraphTrainsWithoutHoldingOut(t *testing.T) {
	r := fit(t, data(t, graphtest.Topics(60, 2, 6, 1)), Options{Epochs: 2}, Checkpoints{})
	if r.Report.HeldOut != 0 || len(r.Report.Epochs) != 2 || r.Report.Best != 2 {
		t.Errorf("report %+v, want the last of two epochs", r.Report)
	}
	if _, err := json.Marshal(r.Report); err != nil {
		t.Errorf("the report does not go into JSON: %v", err)
	}
}

func TestDataIsChecked(t *testing.T) {
	good := data(t, graphtest.Topics(60, 2, 6, 1))
	for name, spoil := range map[string]func(*Data, *Options){
		"labels missing":    func(d *Data, _ *Options) { d.Labels = nil },
		"no linear weights": func(d *Data, _ *Options) { d.Weights = nil },
		"negative epochs":   func(_ *Data, o *Options) { o.Epochs = -1 },
		"keep above one":    func(_ *Data, o *Options) { o.Keep = 1.5 },
		"features of fewer nodes": func(d *Data, _ *Options) {
			d.Features = &sparse.Matrix{Rows: 1, Cols: 1, Start: []int64{0, 0}}
		},
	} {
		d, o := good, Options{}
		spoil(&d, &o)
		if _, err := Train(t.Context(), d, o, Checkpoints{}, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTableKeepsTheCommonestFeatures(t *testing.T) {
	x := &sparse.Matrix{Cols: 6}
	for _, row := range [][]int32{{1, 3}, {1, 4}, {1, 4, 5}} {
		x.Append(sparse.Vector{Index: row, Value: make([]float32, len(row))})
	}
	for limit, want := range map[int][]int32{9: {1, 3, 4, 5}, 3: {1, 3, 4}, 1: {1}} {
		if got := chooseFeatures(x, limit); !slices.Equal(got, want) {
			t.Errorf("at most %d: features %v, want %v", limit, got, want)
		}
	}
}

func FuzzReadState(f *testing.F) {
	s := &State{run: 1, vectors: []float32{1, 2}, square: []float32{3}, best: best{vectors: []float32{4, 5}, heads: [][]float32{{6}}},
		weights: [][]float32{{7}}, mean: [][]float32{{8}}, moments: [][]float32{{9}},
		at: place{Step: 2, History: []Epoch{{Levels: 1, Loss: 2, HeldOutAUC: math.NaN()}}}}
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:20])
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadState(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, artifact.ErrCorrupt) && !errors.Is(err, artifact.ErrUnknown) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		var again bytes.Buffer
		if _, err := s.WriteTo(&again); err != nil {
			t.Error(err)
		}
		if _, err := ReadState(&again); err != nil {
			t.Errorf("a state that was read does not come back: %v", err)
		}
	})
}
