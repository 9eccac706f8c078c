package live_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/live"
)

// planted returns n unit rows around k centres, row i around centre i mod k.
func planted(n, k, dim int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 12))
	centres := make([]float64, k*dim)
	for i := range centres {
		centres[i] = r.NormFloat64()
	}
	var rows []float32
	for i := range n {
		row := make([]float64, dim)
		var square float64
		for d := range row {
			row[d] = centres[i%k*dim+d] + 0.7*r.NormFloat64()
			square += row[d] * row[d]
		}
		for _, v := range row {
			rows = append(rows, float32(v/math.Sqrt(square)))
		}
	}
	return rows
}

func built(t *testing.T, rows []float32, width int, opt labeltree.Options) *labeltree.Tree {
	t.Helper()
	x, err := labeltree.Dense(rows, width)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := labeltree.Build(x, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestAFifthArrivingLiveLeavesTheTreeAsTightAsAFreshOne(t *testing.T) {
	const n, width = 4000, 16
	rows := planted(n, 100, width, 1)
	base := built(t, rows[:n*4/5*width], width, labeltree.Options{MaxLeafSize: 24})
	tree, err := live.NewTree(base, rows[:n*4/5*width], width, live.Options{MaxLeafSize: 24})
	if err != nil {
		t.Fatal(err)
	}
	for l := n * 4 / 5; l < n; l++ {
		if err := tree.Place(int32(l), rows[l*width:(l+1)*width]); err != nil {
			t.Fatal(err)
		}
	}
	last := tree.Levels() - 1
	leaves := 0
	for k := range int32(tree.Clusters(last)) {
		if size := len(tree.Members(last, k)); size > 0 {
			leaves++
		}
	}
	// The fresh tree it must match has at least as many leaves.
	fresh := built(t, rows, width, labeltree.Options{MaxLeafSize: 24})
	x, err := labeltree.Dense(rows, width)
	if err != nil {
		t.Fatal(err)
	}
	want := fresh.MeanCosine(fresh.Levels()-1, x, 1)
	got := tree.MeanCosine(last)
	t.Logf("mean cosine %.3f in %d leaves, fresh %.3f in %d", got, leaves, want, fresh.Clusters(fresh.Levels()-1))
	if tree.Size() != n || got < 0.97*want || leaves > fresh.Clusters(fresh.Levels()-1)*11/10 {
		t.Errorf("%d labels in %d leaves with mean cosine %.3f; a fresh tree has %.3f in %d leaves",
			tree.Size(), leaves, got, want, fresh.Clusters(fresh.Levels()-1))
	}
}

func TestALabelMovesWhenItsFeaturesHaveTurnedFarAndOnlyThen(t *testing.T) {
	const n, width = 400, 16
	rows := planted(n, 8, width, 2)
	base := built(t, rows, width, labeltree.Options{Levels: []int{4, 16}})
	var events []live.Event
	tree, err := live.NewTree(base, rows, width, live.Options{MaxLeafSize: 40,
		Observe: func(e live.Event) { events = append(events, e) }})
	if err != nil {
		t.Fatal(err)
	}
	row := slices.Clone(rows[:width])
	row[0] += 0.01
	if err := tree.Place(0, row); err != nil || len(events) > 0 {
		t.Errorf("a label that hardly turned: %v, events %v", err, events)
	}
	other := int32(1) // of another centre
	if err := tree.Place(0, rows[width:2*width]); err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Kind != live.Moved || tree.Version() != 1 {
		t.Fatalf("a label that has become like another: events %v, want one move", events)
	}
	same := 0
	for _, l := range tree.Members(1, tree.Cluster(1, 0)) {
		if l%8 == other {
			same++
		}
	}
	if same < 10 {
		t.Errorf("its leaf has %d labels of its new kind", same)
	}
}

func TestFeaturesWithoutADirectionRemoveALabel(t *testing.T) {
	rows := planted(100, 4, 8, 3)
	tree, err := live.NewTree(built(t, rows, 8, labeltree.Options{Levels: []int{4}}), rows, 8, live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nan := float32(math.NaN())
	for l, features := range [][]float32{make([]float32, 8), {nan, 0, 0, 0, 0, 0, 0, 0}, {float32(math.Inf(1)),
		0, 0, 0, 0, 0, 0, 0}} {
		if err := tree.Place(int32(l), features); err != nil || tree.Cluster(0, l) >= 0 {
			t.Errorf("label %d with features %v: %v, in cluster %d", l, features, err, tree.Cluster(0, l))
		}
	}
	if tree.Size() != 97 {
		t.Errorf("%d labels are left, want 97", tree.Size())
	}
	if err := tree.Place(3, make([]float32, 7)); err == nil {
		t.Error("features of another dimension accepted")
	}
	if err := tree.Place(-1, make([]float32, 8)); err == nil {
		t.Error("a negative label accepted")
	}
}
