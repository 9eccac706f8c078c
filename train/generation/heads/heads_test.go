package heads

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/internal/graphdir"
	"giantstream/train/numeric"
)

// blocks is a graph of n nodes in three classes, with links mostly within a
// class and embeddings that tell the class only vaguely.
func blocks(n, dim int, noise float64) Data {
	d := Data{Dim: dim}
	var edges [][2]int32
	r := numeric.NewRand(1)
	for i := range n {
		class := i % 3
		d.Classes = append(d.Classes, fmt.Sprintf("class %d", class))
		for k := range dim {
			x := noise * (r.Float64() + r.Float64() - r.Float64() - r.Float64())
			if k%3 == class {
				x++
			}
			d.Vectors = append(d.Vectors, float32(x))
		}
		for range 4 {
			j := r.IntN(n)
			if r.IntN(10) > 0 {
				j = j - j%3 + class
			}
			if j < n {
				edges = append(edges, [2]int32{int32(i), int32(j)})
			}
		}
	}
	d.Neighbours = graphdir.Undirected(n, edges)
	return d
}

func split(t testing.TB, d Data, training, validation float64) Split {
	t.Helper()
	s, err := ByRate(d.Classes, training, validation, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var kinds = []Kind{MLP, SGC, SAGE}

// Where neighbours are mostly of the same class, heads that look at them do better.
func TestHeadsLearnAndGraphsHelp(t *testing.T) {
	d := blocks(900, 9, 3)
	s := split(t, d, 0.3, 0.2)
	accuracy := map[Kind]float64{}
	for _, k := range kinds {
		r, err := Train(t.Context(), k, d, s, Options{Epochs: 60, Hidden: 32, Batch: 64}, nil)
		if err != nil {
			t.Fatal(err)
		}
		accuracy[k] = r.Accuracy
		t.Logf("%s: accuracy %.3f, macro F1 %.3f, epoch %d of %d", k, r.Accuracy, r.MacroF1, r.Best, len(r.Curve))
		if r.Accuracy < r.Majority+0.15 || math.Abs(r.MacroF1-r.Accuracy) > 0.05 {
			t.Errorf("%s: accuracy %.3f, macro F1 %.3f, majority %.3f", k, r.Accuracy, r.MacroF1, r.Majority)
		}
		if r.Train != 270 || r.Validation != 180 || r.Test != 450 || len(r.Classes) != 3 ||
			r.Curve[r.Best-1].Accuracy != r.ValidationAccuracy {
			t.Errorf("%s: report %+v", k, r)
		}
	}
	if accuracy[SGC] < accuracy[MLP]+0.05 || accuracy[SAGE] < accuracy[MLP]+0.05 {
		t.Errorf("accuracies %v, want those of heads that see the graph 0.05 above the MLP's", accuracy)
	}
}

func TestSameReportForAnyNumberOfWorkers(t *testing.T) {
	d := blocks(600, 6, 2)
	s := split(t, d, 0.5, 0.1)
	for _, k := range kinds {
		var want *Report
		for _, workers := range []int{1, 2, 5} {
			r, err := Train(t.Context(), k, d, s, Options{Epochs: 3, Hidden: 16, Batch: 50, Fanout: [2]int{3,
				2}, Workers: workers}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = r
			} else if !reflect.DeepEqual(r, want) {
				t.Errorf("%s: %d workers report\n%+v, one\n%+v", k, workers, r, want)
			}
		}
	}
}

func TestBestEpochIsKeptAndPatienceEnds(t *testing.T) {
	d := blocks(200, 6, 8) // nearly noise: it overfits
	r, err := Train(t.Context(), MLP, d, split(t, d, 0.3, 0.3), Options{Epochs: 500, Patience: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Curve) != r.Best+5 {
		t.Errorf("%d epochs, the best is %d; want five more than that", len(r.Curve), r.Best)
	}
	for _, e := range r.Curve {
		if e.Accuracy > r.ValidationAccuracy {
			t.Errorf("kept an epoch of accuracy %.3f, one has %.3f", r.ValidationAccuracy, e.Accuracy)
		}
	}
	r, err = Train(t.Context(), MLP, d, split(t, d, 0.3, 0), Options{Epochs: 7}, nil)
	if err != nil || r.Best != 7 || len(r.Curve) != 7 {
		t.Errorf("without validation: epoch %d of %d is kept, %v; want 7 of 7", r.Best, len(r.Curve), err)
	}
}

// TestGradients compares every network's gradients with the differences of its loss.
func TestGradients(t *testing.T) {
	d := blocks(40, 4, 1)
	names, label := d.labels()
	nodes := []int32{0, 1, 2, 5, 7, 11, 13, 20}
	for _, k := range kinds {
		for _, dropout := range []float64{-1, 0.3} {
			o := Options{Hidden: 5, Dropout: dropout, Fanout: [2]int{2, 2}, Hops: 2}.withDefaults(k)
			net, err := newNetwork(k, d, len(names), o)
			if err != nil {
				t.Fatal(err)
			}
			tr := &trainer{net: net, o: o, label: label, classes: len(names)}
			const step = 3 // the same nodes and hidden units are left out each time
			scores := net.forward(nodes, step)
			grad := make([]float32, len(scores))
			tr.loss(nodes, scores, grad)
			net.backward(grad)
			for p, q := range net.parameters() {
				for i := range q.value {
					const eps = 1e-3
					at := q.value[i]
					q.value[i] = at + eps
					more, _ := tr.loss(nodes, net.forward(nodes, step), nil)
					q.value[i] = at - eps
					less, _ := tr.loss(nodes, net.forward(nodes, step), nil)
					q.value[i] = at
					want := (more - less) / (2 * eps)
					if got := float64(q.grad[i]); math.Abs(got-want) > 1e-3+0.02*math.Abs(want) {
						t.Errorf("%s, dropout %v, parameter %d[%d]: gradient %.5f, difference %.5f", k, dropout,
							p, i, got, want)
					}
				}
			}
		}
	}
}

// With all neighbours sampled and nothing dropped, a training step sees what
// predict sees.
func TestSampledForwardIsExactWithAllNeighbours(t *testing.T) {
	d := blocks(60, 4, 1)
	o := Options{Hidden: 7, Dropout: -1, Fanout: [2]int{60, 60}}.withDefaults(SAGE)
	net, err := newNetwork(SAGE, d, 3, o)
	if err != nil {
		t.Fatal(err)
	}
	nodes := []int32{9, 3, 44, 59}
	want, got := net.predict(nodes), net.forward(nodes, 1)
	for i := range want {
		if math.Abs(float64(want[i]-got[i])) > 1e-5 {
			t.Fatalf("scores %v in training, %v in prediction", got, want)
		}
	}
}

func TestChooseDrawsFairly(t *testing.T) {
	neighbours := []int32{10, 20, 30, 40, 50}
	count := map[int32]int{}
	for seed := range uint64(2000) {
		got := choose(nil, neighbours, 2, numeric.NewRand(seed))
		if len(got) != 2 || got[0] == got[1] {
			t.Fatalf("drew %v", got)
		}
		count[got[0]]++
		count[got[1]]++
	}
	for _, v := range neighbours {
		if count[v] < 700 || count[v] > 900 {
			t.Errorf("%d drawn %d times of 4000, want about 800", v, count[v])
		}
	}
	if got := choose(nil, neighbours, 5, numeric.NewRand(1)); !slices.Equal(got, neighbours) {
		t.Errorf("of five, drew %v", got)
	}
}

func TestSmoothing(t *testing.T) {
	path := graphdir.Undirected(3, [][2]int32{{0, 1}, {1, 2}}) // 0 – 1 – 2
	got := smooth([]float32{1, 0, 0}, 1, path, 1)
	want := []float32{1.0 / 2, float32(1 / math.Sqrt(6)), 0}
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-6 {
			t.Errorf("smoothed to %v, want %v", got, want)
		}
	}
}

func TestReportCountsPerClass(t *testing.T) {
	var r Report
	r.score([]string{"a", "b", "unseen"}, []int32{0, 0, 1, 1, 2}, []int32{0, 1, 1, 1, 0})
	want := []ClassReport{
		{"a", 2, 0.5, 0.5, 0.5}, {"b", 3, 1, 2.0 / 3, 0.8}, {"unseen", 0, 0, 0, 0},
	}
	if !reflect.DeepEqual(r.Classes,
		want) || r.Accuracy != 0.6 || r.Majority != 0.6 || math.Abs(r.MacroF1-0.65) > 1e-12 {
		t.Errorf("report %+v, want the classes %v, accuracy 0.6, macro F1 0.65", r, want)
	}
}

func TestFaultsAreReported(t *testing.T) {
	d := blocks(60, 3, 1)
	s := split(t, d, 0.5, 0)
	one := d
	one.Classes = slices.Repeat([]string{"same"}, 60)
	ragged := d
	ragged.Vectors = d.Vectors[1:]
	alone := d
	alone.Neighbours = &sparse.Matrix{}
	for _, c := range []struct {
		name string
		kind Kind
		d    Data
		o    Options
		want string
	}{
		{"unknown head", "gat", d, Options{}, ErrKind.Error()},
		{"one class", MLP, one, Options{}, ErrClasses.Error()},
		{"numbers missing", MLP, ragged, Options{}, "179 numbers"},
		{"no graph", SAGE, alone, Options{}, "adjacency"},
		{"dropout of all", MLP, d, Options{Dropout: 1}, "dropout"},
		{"negative epochs", MLP, d, Options{Epochs: -1}, "positive"},
		{"rate far too high", MLP, d, Options{Rate: 1e30}, ErrDiverged.Error()},
	} {
		if _, err := Train(t.Context(), c.kind, c.d, s, c.o, nil); err == nil || !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Train(ctx, MLP, d, s, Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if _, err := Train(t.Context(), MLP, d, s, Options{Epochs: 1}, nil); err != nil {
		t.Errorf("an MLP with a graph it does not need: %v", err)
	}
}
