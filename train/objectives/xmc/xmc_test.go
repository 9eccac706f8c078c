package xmc

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
)

// binary is a tree of 2^(level+1) clusters per level over 2^levels·each
// labels in order; the labels in out are in no cluster.
type binary struct {
	levels, each int
	out          []int
}

func (b binary) Levels() int        { return b.levels }
func (b binary) Clusters(l int) int { return 2 << l }

func (b binary) Cluster(level, label int) int32 {
	if slices.Contains(b.out, label) {
		return -1
	}
	return int32(label / b.each >> (b.levels - 1 - level))
}

func adjacency(cols int, rows ...[]int32) *sparse.Matrix {
	m := &sparse.Matrix{Cols: cols}
	for _, r := range rows {
		m.Append(sparse.Vector{Index: r})
	}
	return m
}

func TestFromTreeCountsLabelsPerCluster(t *testing.T) {
	// Eight labels, two to a leaf, label 7 in none.
	tree := binary{levels: 2, each: 2, out: []int{7}}
	none := []int32{}
	y := adjacency(8, []int32{0, 1, 4}, []int32{7}, none, none, none, none, none, []int32{2, 6, 7})
	p, err := FromTree(tree, y)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		level, instance int
		clusters        []int32
		counts          []float32
	}{
		{0, 0, []int32{0, 1}, []float32{2, 1}},
		{1, 0, []int32{0, 2}, []float32{2, 1}},
		{0, 1, nil, nil},
		{1, 7, []int32{1, 3}, []float32{1, 1}},
	} {
		got := p.Levels[c.level].Targets.Row(c.instance)
		if !slices.Equal(got.Index, c.clusters) || !slices.Equal(got.Value, c.counts) {
			t.Errorf("instance %d at level %d: clusters %v counts %v, want %v %v", c.instance, c.level, got.Index,
				got.Value, c.clusters, c.counts)
		}
	}
	if !slices.Equal(p.Levels[1].Parent, []int32{0, 0, 1, 1}) {
		t.Errorf("parents %v", p.Levels[1].Parent)
	}
	y.Value = []float32{0.5, 2, 4, 1, 1, 0.25, 8}
	if p, err = FromTree(tree, y); err != nil {
		t.Fatal(err)
	}
	if got := p.Levels[0].Targets.Row(0); !slices.Equal(got.Value, []float32{2.5, 4}) {
		t.Errorf("weights of clusters %v, want 2.5 and 4", got.Value)
	}
}

// fromLevels poses a problem without targets.
func fromLevels(levels []Level) (*Problem, error) {
	p := &Problem{Levels: levels}
	return p, p.prepare()
}

func TestBrokenParentsAreRefused(t *testing.T) {
	for _, parent := range [][]int32{nil, {0}, {0, 2}, {-1, 0}} {
		if _, err := fromLevels([]Level{{Clusters: 2}, {Clusters: 2, Parent: parent}}); err == nil {
			t.Errorf("parents %v of two clusters were accepted", parent)
		}
	}
}

func TestTopIsBestFirstAndStable(t *testing.T) {
	got := top(nil, []int32{5, 6, 7, 8, 9}, []float32{1, 3, 3, 0, 2}, 3)
	if !slices.Equal(got, []int32{6, 7, 9}) {
		t.Errorf("top three: %v, want 6 7 9", got)
	}
}

// large is a problem whose second level is too large to be scored whole.
func large(t *testing.T) *Problem {
	t.Helper()
	tree := binary{levels: 10, each: 1}
	rows := make([][]int32, 1024)
	for i := range rows {
		rows[i] = []int32{int32(i), int32((i + 500) % 1024)}
		slices.Sort(rows[i])
	}
	p, err := FromTree(tree, adjacency(1024, rows...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCandidatesAreSiblingsOfPositivesAndOfTheMatched(t *testing.T) {
	p := large(t)
	got := p.candidates(nil, 9, []int32{0, 500}, []int32{3, 250})
	if want := []int32{0, 1, 6, 7, 500, 501}; !slices.Equal(got, want) {
		t.Errorf("candidates %v, want %v", got, want)
	}
}

func TestHeadsLearnAndPredict(t *testing.T) {
	// Four well-separated embeddings, each with labels in one leaf.
	tree := binary{levels: 2, each: 1}
	p, err := FromTree(tree, adjacency(4, []int32{0}, []int32{1}, []int32{2}, []int32{3}))
	if err != nil {
		t.Fatal(err)
	}
	h := NewHeads(p, 4, 4, Options{})
	z := make([]float32, 16)
	for i := range 4 {
		z[i*4+i] = 1
	}
	dz := make([]float32, 4)
	for step := range int64(200) {
		for i := range 4 {
			h.Forward(i, z[i*4:i*4+4], p.Targets(i), Span{To: 2}, 1, dz)
		}
		h.Update(4, 0.02, step+1, 2)
	}
	m := Matcher{Problem: p, Dim: 4, Weights: h.Weights}
	for i := range 4 {
		for level, best := range m.Predict(z[i*4:i*4+4], 1) {
			if want := p.Targets(i)[level].Index; !slices.Equal(best, want) {
				t.Errorf("instance %d, level %d: %v, want %v", i, level, best, want)
			}
		}
	}
}

func TestPredictionsAreBestFirstAtEveryLevel(t *testing.T) {
	p := large(t)
	h := NewHeads(p, 8, 1, Options{})
	r := numeric.NewRand(5)
	for _, w := range h.Weights {
		for i := range w {
			w[i] = float32(r.Float64() - 0.5)
		}
	}
	z := []float32{1, 0, 0, 0, 0, 0, 0, 0}
	m := Matcher{Problem: p, Dim: 8, Weights: h.Weights}
	for level, clusters := range m.Predict(z, 5) {
		for k := 1; k < len(clusters); k++ {
			if a, b := h.Weights[level][clusters[k-1]*8], h.Weights[level][clusters[k]*8]; a < b {
				t.Errorf("level %d: cluster %d scores %.3f, after it %d scores %.3f",
					level, clusters[k-1], a, clusters[k], b)
			}
		}
	}
}

func TestUpdateIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	p := large(t)
	var want [][]float32
	for _, workers := range []int{1, 2, 7} {
		h := NewHeads(p, 8, 16, Options{})
		dz := make([]float32, 8)
		for step := range int64(3) {
			for k := range 16 {
				r := numeric.NewRand(1, uint64(step), uint64(k))
				z := make([]float32, 8)
				for d := range z {
					z[d] = float32(r.Float64() - 0.5)
				}
				h.Forward(k, z, p.Targets((k*61)%1024), Span{From: 1, To: 10}, 1, dz)
			}
			h.Update(16, 0.01, step+1, workers)
		}
		if want == nil {
			want = h.Weights
		}
		for l := range want {
			if !slices.Equal(h.Weights[l], want[l]) {
				t.Errorf("%d workers: level %d differs", workers, l)
			}
		}
	}
}

// The best candidates are those of a sort, for any scores.
func TestTopIsTheHeadOfTheSortedScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for range 2000 {
		n, k := rng.IntN(30), 1+rng.IntN(12)
		candidates, scores := make([]int32, n), make([]float32, n)
		for i := range n {
			candidates[i] = int32(2 * i)
			scores[i] = []float32{nan, inf, -inf, 0, 1, 2, 3}[rng.IntN(7)]
		}
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		value := func(i int) float32 {
			if math.IsNaN(float64(scores[i])) {
				return -inf
			}
			return scores[i]
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(value(b), value(a)) })
		want := []int32{7}
		for _, i := range order[:min(k, n)] {
			want = append(want, candidates[i])
		}
		if got := top([]int32{7}, candidates, scores, k); !slices.Equal(got, want) {
			t.Fatalf("top %d of %v: got %v, want %v", k, scores, got, want)
		}
	}
}
