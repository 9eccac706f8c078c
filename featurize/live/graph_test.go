package live_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/live"
	"giantstream/featurize/pifa"
	"giantstream/featurize/sparse"
)

const dim = 8

// model is the graph kept the plain way: what a live graph must agree with.
type model struct {
	texts map[int32][]float32
	edges map[[2]int32]bool // instance, label
	nodes int32
}

// fresh returns projected texts, labels (existing ends only) and sums, all
// computed from the start.
func (m *model) fresh(t *testing.T, w pifa.Weighting) ([]float32, *sparse.Matrix, *pifa.Sketch) {
	t.Helper()
	projected := make([]float32, int(m.nodes)*dim)
	for n, text := range m.texts {
		copy(projected[int(n)*dim:], text)
	}
	y := &sparse.Matrix{Cols: int(m.nodes), Start: []int64{0}}
	for i := range m.nodes {
		var row sparse.Vector
		for l := range m.nodes {
			if m.edges[[2]int32{i, l}] && m.texts[i] != nil && m.texts[l] != nil {
				row.Index = append(row.Index, l)
			}
		}
		y.Append(row)
	}
	s, err := pifa.FromGraph(projected, dim, y, w, 1)
	if err != nil {
		t.Fatal(err)
	}
	return projected, y, s
}

// text returns a random projected text; one in ten says nothing.
func text(r *rand.Rand) []float32 {
	v := make([]float32, dim)
	if r.IntN(10) > 0 {
		for k := range v {
			v[k] = float32(r.NormFloat64())
		}
	}
	return v
}

// start returns a random graph, plain and live, with leaves of at most bound labels.
func start(t *testing.T, r *rand.Rand, w pifa.Weighting, opt live.Options) (*model, *live.Graph, *labeltree.Tree) {
	t.Helper()
	m := &model{texts: map[int32][]float32{}, edges: map[[2]int32]bool{}, nodes: 40}
	for n := range m.nodes {
		m.texts[n] = text(r)
	}
	for range 120 {
		if i, l := r.Int32N(m.nodes), r.Int32N(m.nodes); i != l {
			m.edges[[2]int32{i, l}] = true
		}
	}
	projected, y, s := m.fresh(t, w)
	x, err := labeltree.Dense(s.Normalized(), dim)
	if err != nil {
		t.Fatal(err)
	}
	base, err := labeltree.Build(x, labeltree.Options{Levels: []int{2, 6, 12}, Seed: r.Uint64()})
	if err != nil {
		t.Fatal(err)
	}
	g, err := live.NewGraph(base, projected, dim, y, w, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m, g, base
}

// step changes both in the same random way.
func step(r *rand.Rand, m *model, g *live.Graph) {
	n, other := r.Int32N(m.nodes), r.Int32N(m.nodes)
	switch op := r.IntN(20); {
	case op < 2:
		g.Grow(1)
		m.nodes++
	case op < 6:
		m.texts[n] = text(r)
		g.SetText(n, m.texts[n])
	case op < 8:
		delete(m.texts, n)
		g.Delete(n)
	case n == other:
	case op < 16:
		m.edges[[2]int32{n, other}] = true
		g.AddEdge(n, other)
	default:
		for l := range m.nodes { // of the instance, so that there is one to remove
			if m.edges[[2]int32{n, l}] {
				other = l
				break
			}
		}
		delete(m.edges, [2]int32{n, other})
		g.RemoveEdge(n, other)
	}
}

func TestAnySequenceOfChangesKeepsTheInvariants(t *testing.T) {
	for seed := range uint64(12) {
		w := pifa.Weighting(seed % 2)
		bound := 0
		if seed%3 > 0 {
			bound = int(seed % 7)
		}
		r := rand.New(rand.NewPCG(seed, 1))
		var log []live.Event
		m, g, base := start(t, r, w, live.Options{MaxLeafSize: bound, Seed: seed,
			Observe: func(e live.Event) { log = append(log, e) }})
		for i := range 1500 {
			step(r, m, g)
			if i%100 == 0 || i > 1490 {
				checkSums(t, m, g, w)
				checkTree(t, g)
				checkLog(t, log, base, g.Tree())
			}
			if t.Failed() {
				t.Fatalf("seed %d, after %d changes", seed, i+1)
			}
		}
	}
}

// checkSums compares the sums with a fresh computation.
func checkSums(t *testing.T, m *model, g *live.Graph, w pifa.Weighting) {
	t.Helper()
	_, y, want := m.fresh(t, w)
	for l := range int(m.nodes) {
		for k, v := range want.Sum(l) {
			if got := g.Sketch().Sum(l)[k]; math.Abs(float64(got-v)) > 1e-4 {
				t.Fatalf("label %d: sum %v, computed afresh %v", l, g.Sketch().Sum(l), want.Sum(l))
			}
		}
		// It is in the tree if it exists and an instance of it says something.
		in := false
		for i := range m.nodes {
			says := slices.ContainsFunc(m.texts[i], func(v float32) bool { return v != 0 })
			in = in || says && slices.Contains(y.Row(int(i)).Index, int32(l))
		}
		if got := g.Tree().Cluster(0, l) >= 0; got != in {
			t.Fatalf("label %d: in the tree %v, want %v", l, got, in)
		}
	}
}

// checkTree checks that the leaves partition the labels within the bound, and
// that the levels are a hierarchy.
func checkTree(t *testing.T, g *live.Graph) {
	t.Helper()
	tree := g.Tree()
	last := tree.Levels() - 1
	seen := 0
	for k := range int32(tree.Clusters(last)) {
		members := tree.Members(last, k)
		if len(members) > tree.MaxLeafSize() {
			t.Errorf("leaf %d holds %d labels, more than %d", k, len(members), tree.MaxLeafSize())
		}
		for _, l := range members {
			if got := tree.Cluster(last, int(l)); got != k {
				t.Errorf("label %d is a member of leaf %d, Cluster says %d", l, k, got)
			}
			for level := last; level > 0; level-- {
				if got, want := tree.Cluster(level-1, int(l)), tree.Parent(level, tree.Cluster(level,
					int(l))); got != want {
					t.Errorf("label %d: cluster %d of level %d, its parent says %d", l, got, level-1, want)
				}
			}
		}
		seen += len(members)
	}
	for level := range last {
		at := 0
		for c := range int32(tree.Clusters(level)) {
			at += len(tree.Members(level, c))
		}
		if at != tree.Size() {
			t.Errorf("level %d holds %d labels of %d", level, at, tree.Size())
		}
	}
	if seen != tree.Size() {
		t.Errorf("leaves hold %d labels, Size says %d", seen, tree.Size())
	}
}

// checkLog replays the events over the base tree.
func checkLog(t *testing.T, log []live.Event, base *labeltree.Tree, tree *live.Tree) {
	t.Helper()
	last := base.Levels() - 1
	leafOf := map[int32]int32{}
	for l := range int32(base.Labels()) {
		if k := base.Cluster(last, int(l)); k >= 0 {
			leafOf[l] = k
		}
	}
	leaves := base.Clusters(last)
	for i, e := range log {
		if e.Version != int64(i+1) {
			t.Fatalf("event %d has version %d", i, e.Version)
		}
		switch e.Kind {
		case live.Split:
			leaves++
		case live.Removed:
			delete(leafOf, e.Label)
		default:
			leafOf[e.Label] = e.To
		}
	}
	if tree.Version() != int64(len(log)) || leaves != tree.Clusters(last) {
		t.Errorf("version %d with %d leaves after %d events and %d leaves", tree.Version(), tree.Clusters(last),
			len(log), leaves)
	}
	for l := range tree.Labels() {
		want, ok := leafOf[int32(l)]
		if !ok {
			want = -1
		}
		if got := tree.Cluster(last, l); got != want {
			t.Errorf("label %d is in leaf %d, by the log in %d", l, got, want)
		}
	}
}

func TestTheSameSequenceGivesTheSameTree(t *testing.T) {
	run := func() (assigned []int32, log []live.Event) {
		r := rand.New(rand.NewPCG(5, 5))
		m, g, _ := start(t, r, pifa.Sum, live.Options{MaxLeafSize: 5,
			Observe: func(e live.Event) { log = append(log, e) }})
		for range 400 {
			n, other := r.Int32N(m.nodes), r.Int32N(m.nodes)
			g.SetText(n, text(r))
			g.AddEdge(n, other)
		}
		for l := range g.Len() {
			assigned = append(assigned, g.Tree().Cluster(2, l))
		}
		return assigned, log
	}
	assigned, log := run()
	again, logAgain := run()
	if !reflect.DeepEqual(assigned, again) || !reflect.DeepEqual(log, logAgain) {
		t.Error("two runs of the same changes ended with different trees")
	}
}

func TestATreeThatAllLabelsHaveLeftTakesNewOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	m, g, _ := start(t, r, pifa.Sum, live.Options{MaxLeafSize: 2})
	for n := range m.nodes {
		g.Delete(n)
	}
	if g.Tree().Size() != 0 {
		t.Fatalf("%d labels left", g.Tree().Size())
	}
	m.texts = map[int32][]float32{}
	for n := range m.nodes {
		m.texts[n] = text(r)
		g.SetText(n, m.texts[n])
	}
	checkSums(t, m, g, pifa.Sum)
	checkTree(t, g)
}

func TestTargetsOfALabelNewerThanTheTree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	_, g, _ := start(t, r, pifa.Sum, live.Options{})
	instance, label := g.Grow(2), int32(g.Len()-1)
	says := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	g.AddEdge(instance, label)
	if clusters, _, unknown := g.Targets(instance); unknown != 1 || len(clusters[0]) != 0 {
		t.Errorf("before the nodes exist: clusters %v, %d unknown; want none and 1", clusters, unknown)
	}
	g.SetText(instance, says)
	g.SetText(label, says)
	clusters, counts, unknown := g.Targets(instance)
	for level := range g.Tree().Levels() {
		want := []int32{g.Tree().Cluster(level, int(label))}
		if !slices.Equal(clusters[level], want) || !slices.Equal(counts[level], []int32{1}) || unknown != 0 {
			t.Errorf("level %d: clusters %v counts %v, %d unknown; want %v", level, clusters[level],
				counts[level], unknown, want)
		}
	}
	g.Delete(label)
	if clusters, _, unknown := g.Targets(instance); unknown != 1 || len(clusters[2]) != 0 {
		t.Errorf("after the label is gone: clusters %v, %d unknown; want none and 1", clusters, unknown)
	}
}
