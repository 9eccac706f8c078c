package xrlinear

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
	"giantstream/train/objectives/xmc"
)

// halves is a tree of two levels over labels 0…n-1: leaves of size labels each,
// two leaves to a cluster. Labels from n on are in none.
type halves struct{ n, size, all int }

func (h halves) Levels() int { return 2 }
func (h halves) Labels() int { return h.all }
func (h halves) Clusters(level int) int {
	leaves := (h.n + h.size - 1) / h.size
	if level == 1 {
		return leaves
	}
	return (leaves + 1) / 2
}
func (h halves) Cluster(level, label int) int32 {
	switch {
	case label >= h.n:
		return -1
	case level == 1:
		return int32(label / h.size)
	}
	return int32(label / h.size / 2)
}

// task has n instances of a few topics: the words of a topic's texts are its
// own, and its labels are the topic's.
func task(n int, tree halves, seed uint64) (x, y *sparse.Matrix) {
	const topics, words = 8, 12
	x, y = &sparse.Matrix{Cols: topics*words + n + 40}, &sparse.Matrix{Cols: tree.all}
	each := tree.n / topics
	for i := range n {
		r := numeric.NewRand(seed, uint64(i))
		topic := int32(i % topics)
		values := map[int32]float32{topics*words + int32(i): 0.5} // a word of its own
		for range 6 {
			values[topic*words+int32(r.IntN(words))]++
			values[int32(topics*words+n+r.IntN(40))]++ // a word of anybody's
		}
		x.Append(unit(values))
		labels := map[int32]bool{}
		for range 3 {
			labels[topic*int32(each)+int32(r.IntN(each))] = true
		}
		var row sparse.Vector
		for l := range labels {
			row.Index = append(row.Index, l)
		}
		slices.Sort(row.Index)
		y.Append(row)
	}
	return x, y
}

func unit(values map[int32]float32) (v sparse.Vector) {
	for j := range values {
		v.Index = append(v.Index, j)
	}
	slices.Sort(v.Index)
	var square float64
	for _, j := range v.Index {
		square += float64(values[j]) * float64(values[j])
	}
	for _, j := range v.Index {
		v.Value = append(v.Value, values[j]/float32(math.Sqrt(square)))
	}
	return v
}

var tree = halves{n: 64, size: 4, all: 70}

func trained(t *testing.T, x, y *sparse.Matrix, o Options) *Model {
	t.Helper()
	return trainedFor(t, x, y, tree, o)
}

func trainedFor(t *testing.T, x, y *sparse.Matrix, tree halves, o Options) *Model {
	t.Helper()
	m, err := Train(t.Context(), x, y, tree, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Texts it has not seen get labels of their own topic.
func TestPredictsTheTopicOfNewTexts(t *testing.T) {
	x, y := task(400, tree, 1)
	unseen, truth := task(400, tree, 2)
	for _, o := range []Options{{}, {Matched: 3}} {
		m := trained(t, x, y, o)
		right := 0
		for i, best := range m.PredictAll(unseen, Beam{Width: 5, Top: 3}, 2) {
			if len(best) != 3 {
				t.Fatalf("%d predictions, want 3", len(best))
			}
			for k, p := range best {
				if k > 0 && p.Score > best[k-1].Score || p.Score <= 0 || p.Score > 1 {
					t.Fatalf("scores %v", best)
				}
			}
			if best[0].Label/8 == truth.Row(i).Index[0]/8 {
				right++
			}
		}
		if right < 390 {
			t.Errorf("%+v: %d of 400 texts get a label of their topic", o, right)
		}
	}
}

// Every classifier must be the optimum of its problem: its objective is
// compared with that of a plain solver in float64.
func TestClassifiersAreOptimal(t *testing.T) {
	x, y := task(120, tree, 1)
	o := Options{Epsilon: 1e-4, Threshold: 1e-9, Passes: 1000, Cost: 0.7}.withDefaults()
	levels, _ := pose(y, tree)
	var m Model
	rows := m.parents(x, levels, 1, o)
	positives := levels[1].y.Transpose()
	w := newWorker(o, x.Cols)
	for p := range 2 {
		l := w.localizer.take(x, rows.Row(p).Index)
		var lists [][]int32
		for c := levels[1].start[p]; c < levels[1].start[p+1]; c++ {
			lists = append(lists, positives.Row(int(c)).Index)
		}
		got := w.train(l, lists, numeric.NewRand(2))
		for c, list := range lists {
			dense := make([]float64, x.Cols+1)
			for k, j := range got.column {
				if got.child[k] == int32(c) {
					dense[l.name(int(j))] = float64(got.weight[k])
				}
			}
			dense[x.Cols] = float64(got.bias[c])
			loss := primalObjective(x, l.rows, list, o.Cost, dense)
			best := primalObjective(x, l.rows, list, o.Cost, minimise(x, l.rows, list, o.Cost))
			if loss > best*(1+1e-3) {
				t.Errorf("cluster %d below %d: objective %.6f, the minimum is %.6f", c, p, loss, best)
			}
		}
	}
}

func primalObjective(x *sparse.Matrix, rows, positives []int32, cost float64, w []float64) float64 {
	var f float64
	for _, v := range w {
		f += v * v / 2
	}
	for _, i := range rows {
		if slack := 1 - sign(positives, i)*margin(x, i, w); slack > 0 {
			f += cost * slack * slack
		}
	}
	return f
}

// minimise descends along the gradient.
func minimise(x *sparse.Matrix, rows, positives []int32, cost float64) []float64 {
	w := make([]float64, x.Cols+1)
	step := 1 / (1 + 4*cost*float64(len(rows)))
	for range 20000 {
		g := slices.Clone(w)
		for _, i := range rows {
			s := sign(positives, i)
			if slack := 1 - s*margin(x, i, w); slack > 0 {
				row := x.Row(int(i))
				for k, j := range row.Index {
					g[j] -= 2 * cost * slack * s * float64(row.Value[k])
				}
				g[x.Cols] -= 2 * cost * slack * s
			}
		}
		for j := range w {
			w[j] -= step * g[j]
		}
	}
	return w
}

func sign(positives []int32, i int32) float64 {
	if slices.Contains(positives, i) {
		return 1
	}
	return -1
}

func margin(x *sparse.Matrix, i int32, w []float64) float64 {
	s := w[x.Cols]
	row := x.Row(int(i))
	for k, j := range row.Index {
		s += w[j] * float64(row.Value[k])
	}
	return s
}

// Together or one by one, queries get the same answers.
func TestPredictAllIsPredict(t *testing.T) {
	x, y := task(300, tree, 1)
	m := trained(t, x, y, Options{})
	q := m.NewQuery()
	b := Beam{Width: 3, Top: 7}
	for i, all := range m.PredictAll(x, b, 3) {
		if one := m.Predict(q, x.Row(i), b, nil); !slices.Equal(all, one) {
			t.Fatalf("query %d: %v together, %v alone", i, all, one)
		}
	}
}

func TestSameForAnyNumberOfWorkers(t *testing.T) {
	x, y := task(300, tree, 1)
	a, b := trained(t, x, y, Options{Workers: 1, Matched: 2}), trained(t, x, y, Options{Workers: 5, Matched: 2})
	if !reflect.DeepEqual(a, b) {
		t.Error("the models differ")
	}
	if c := trained(t, x, y, Options{Workers: 1, Matched: 2, Seed: 9}); reflect.DeepEqual(a, c) {
		t.Error("the seed makes no difference")
	}
}

// The children of a large parent are divided among the workers.
func TestLargeParents(t *testing.T) {
	wide := halves{n: 256, size: 4, all: 256} // 32 clusters at the root
	x, y := task(spread, wide, 1)
	a := trainedFor(t, x, y, wide, Options{Workers: 1})
	if b := trainedFor(t, x, y, wide, Options{Workers: 3}); !reflect.DeepEqual(a, b) {
		t.Error("the models differ by the number of workers")
	}
	unseen, truth := task(400, wide, 2)
	right := 0
	for i, best := range a.PredictAll(unseen, Beam{Top: 1}, 2) {
		if best[0].Label/32 == truth.Row(i).Index[0]/32 {
			right++
		}
	}
	if right < 390 {
		t.Errorf("%d of 400 texts get a label of their topic", right)
	}
}

// A query's score is the product of its path's, weight by weight: with leaves of
// few labels and of more than go side by side.
func TestScoresAreThoseOfTheWeights(t *testing.T) {
	for _, tree := range []halves{tree, {n: 288, size: 72, all: 288}} {
		checkScores(t, tree)
	}
}

func checkScores(t *testing.T, tree halves) {
	x, y := task(200, tree, 1)
	m := trainedFor(t, x, y, tree, Options{})
	q := m.NewQuery()
	for i := range 20 {
		row := x.Row(i)
		for _, p := range m.Predict(q, row, Beam{Width: 64, Top: 64}, nil) {
			leaf := tree.Cluster(1, int(p.Label))
			top := tree.Cluster(0, int(p.Label))
			want := hinge(score(&m.levels[0].chunks[0], row, top)) *
				hinge(score(&m.levels[1].chunks[top], row, leaf-m.levels[1].start[top])) *
				hinge(score(&m.levels[2].chunks[leaf], row, p.Label-m.levels[2].start[leaf]))
			if math.Abs(float64(want-p.Score)) > 1e-6 {
				t.Fatalf("label %d has %g, its weights say %g", p.Label, p.Score, want)
			}
		}
	}
}

func score(c *chunk, x sparse.Vector, child int32) float32 {
	s := c.bias[child]
	for k, j := range x.Index {
		at := c.home(j)
		switch r := c.seek(j, at, c.table[at]); {
		case r < 0:
		case r < c.rows:
			s += x.Value[k] * c.full[int(r)*c.lanes+int(child)]
		default:
			for _, w := range c.cells[c.start[r-c.rows]:c.start[r-c.rows+1]] {
				if w.child == child {
					s += x.Value[k] * w.weight
				}
			}
		}
	}
	return s
}

// Labels that nobody has, or that are in no cluster, and instances without
// features or labels do no harm.
func TestGapsInTheData(t *testing.T) {
	x, y := task(100, tree, 1)
	x.Append(sparse.Vector{})
	y.Append(sparse.Vector{Index: []int32{3, 66}})
	x.Append(x.Row(0))
	y.Append(sparse.Vector{Index: []int32{69}})
	m := trained(t, x, y, Options{})
	q := m.NewQuery()
	for _, p := range m.Predict(q, sparse.Vector{}, Beam{Width: 64, Top: 100}, nil) {
		if p.Label >= 64 {
			t.Errorf("label %d is in no cluster", p.Label)
		}
	}
}

func TestTrainRefuses(t *testing.T) {
	x, y := task(10, tree, 1)
	none := &sparse.Matrix{Cols: 70}
	for range 10 {
		none.Append(sparse.Vector{Index: []int32{65}})
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		x, y *sparse.Matrix
		want error
	}{
		"no label in the tree": {t.Context(), x, none, ErrNoLabels},
		"cancelled":            {cancelled, x, y, context.Canceled},
		"rows missing":         {t.Context(), &sparse.Matrix{Start: []int64{0}}, y, nil},
		"labels missing":       {t.Context(), x, &sparse.Matrix{Rows: 10, Cols: 3, Start: make([]int64, 11)}, nil},
	} {
		_, err := Train(c.ctx, c.x, c.y, tree, Options{}, nil)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestBestKeepsTheBest(t *testing.T) {
	nodes := []node{{0, 0.5}, {1, 0.9}, {2, 0.5}, {3, 0.1}, {4, 0.9}}
	got := fmt.Sprint(best(slices.Clone(nodes), 3))
	if want := fmt.Sprint([]node{{1, 0.9}, {4, 0.9}, {0, 0.5}}); got != want {
		t.Errorf("best 3: %s, want %s", got, want)
	}
	if n := len(best(slices.Clone(nodes), 9)); n != 5 {
		t.Errorf("best 9 of 5 are %d", n)
	}
}

// Figures of a level are means over the instances that have a label there.
func TestEvaluateCountsHits(t *testing.T) {
	r := metrics([]node{{4, 0.9}, {2, 0.8}, {7, 0.7}, {1, 0.6}, {9, 0.5}, {3, 0.4}}, []int32{1, 2, 3, 8})
	want := xmc.LevelMetrics{P1: 0, P3: 1. / 3, P5: 2. / 5, Recall10: 3. / 4}
	if r != want {
		t.Errorf("hits %+v, want %+v", r, want)
	}

	x, y := task(400, tree, 1)
	unseen, truth := task(100, tree, 2)
	m := trained(t, x, y, Options{})
	unseen.Append(unseen.Row(0))
	truth.Append(sparse.Vector{Index: []int32{69}}) // in no cluster: counts nowhere
	levels, err := m.Evaluate(unseen, truth, tree, 3)
	if err != nil || len(levels) != 3 {
		t.Fatalf("%d levels (%v), want 3", len(levels), err)
	}
	for k, clusters := range []int{8, 16, 64} {
		if levels[k].Clusters != clusters || levels[k].P1 <= 0 || levels[k].P1 > 1 {
			t.Errorf("level %d: %+v", k, levels[k])
		}
	}
	if levels[0].P1 < 0.95 || levels[0].P1 < levels[2].P1 {
		t.Errorf("P@1 of topics %.3f, of labels %.3f", levels[0].P1, levels[2].P1)
	}
	if _, err := m.Evaluate(unseen, y, tree, 1); err == nil {
		t.Error("features and labels of different rows are taken")
	}
}
