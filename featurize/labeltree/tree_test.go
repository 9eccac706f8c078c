package labeltree

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"giantstream/featurize/internal/datatest"
	"giantstream/featurize/sparse"
	"giantstream/internal/artifact"
)

// planted returns n unit rows around k centres, row i around centre i mod k.
func planted(n, k, dim int, noise float64) []float32 {
	r := rand.New(rand.NewPCG(11, 12))
	centres := make([]float64, k*dim)
	for i := range centres {
		centres[i] = r.NormFloat64()
	}
	rows := make([]float32, 0, n*dim)
	for i := range n {
		row := make([]float64, dim)
		var square float64
		for d := range row {
			row[d] = centres[i%k*dim+d] + noise*r.NormFloat64()
			square += row[d] * row[d]
		}
		for _, v := range row {
			rows = append(rows, float32(v/math.Sqrt(square)))
		}
	}
	return rows
}

func build(t testing.TB, values []float32, dim int, opt Options) *Tree {
	t.Helper()
	x, err := Dense(values, dim)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Build(x, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestDefaultShape(t *testing.T) {
	for n, want := range map[int][]int{
		1: {1}, 3: {1}, 10: {4}, 100: {16}, 1000: {32}, 7145: {16, 64, 256},
		59277: {32, 128, 512, 2048}, 169343: {16, 64, 256, 1024, 4096},
	} {
		got, err := Options{}.levels(n)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d labels: levels %v (%v), want %v", n, got, err, want)
		}
	}
}

func TestBranchingDecidesTheShape(t *testing.T) {
	for _, tc := range []struct {
		labels, branching int
		want              []int
	}{
		{59277, 2, []int{16, 32, 64, 128, 256, 512, 1024, 2048}},
		{59277, 3, []int{16, 48, 144, 432, 1296}},
		{59277, 10, []int{16, 160, 1600}},
		{59277, 100, []int{16, 1600}},
		{59277, 1000000, []int{2048}},
		{100, 10, []int{16}},
	} {
		o := Options{Branching: tc.branching}
		if got, err := o.levels(tc.labels); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%d labels, branching %d: levels %v (%v), want %v", tc.labels, tc.branching, got, err, tc.want)
		}
	}
	for n := 1; n < 3000; n += 7 { // whatever is asked for, leaves are neither empty nor too large
		for _, o := range []Options{{Branching: 3, MaxLeafSize: 5}, {Branching: 7, MaxLeafSize: 2}, {MaxLeafSize: 1}} {
			levels, err := o.levels(n)
			leaves := levels[len(levels)-1]
			if size := (n + leaves - 1) / leaves; err != nil || leaves > n || size > max(2, o.MaxLeafSize) {
				t.Fatalf("%d labels, %+v: levels %v, leaves of up to %d (%v)", n, o, levels, size, err)
			}
		}
	}
}

func TestImpossibleShapesAreRefused(t *testing.T) {
	for _, o := range []Options{{Levels: []int{4, 4}}, {Levels: []int{0}}, {Levels: []int{8, 4}},
		{Levels: []int{8, 12}}, {Levels: []int{2048}}, {Branching: 1}, {Branching: -4}} {
		if got, err := o.levels(1000); err == nil {
			t.Errorf("%+v gave levels %v", o, got)
		}
	}
}

func TestEveryLevelPartitionsTheLabelsEvenly(t *testing.T) {
	const n = 1003
	rows := planted(n, 7, 16, 0.5)
	for _, opt := range []Options{
		{Levels: []int{4, 16, 128}}, {Levels: []int{3, 15, 45, 180}}, {Levels: []int{1, 7,
			1001}}, {Levels: []int{1003}},
		{Branching: 3, MaxLeafSize: 4}, {Branching: 10, MaxLeafSize: 10}, {Levels: []int{5, 15}, Sample: 50},
	} {
		checkPartition(t, n, build(t, rows, 16, opt))
	}
}

func checkPartition(t *testing.T, n int, tree *Tree) {
	t.Helper()
	for level := range tree.Levels() {
		smallest, largest := n, 0
		seen := make([]int, n)
		for c := range int32(tree.Clusters(level)) {
			members := tree.Members(level, c)
			smallest, largest = min(smallest, len(members)), max(largest, len(members))
			for _, label := range members {
				seen[label]++
				if got := tree.Cluster(level, int(label)); got != c {
					t.Fatalf("level %d: label %d is a member of %d, Cluster says %d", level, label, c, got)
				}
			}
			if level > 0 {
				lo, hi := tree.Children(level-1, tree.Parent(level, c))
				if c < lo || c >= hi {
					t.Errorf("level %d: cluster %d is not among its parent's children %d..%d", level, c, lo, hi)
				}
			}
		}
		if largest-smallest > 1 {
			t.Errorf("level %d: sizes from %d to %d", level, smallest, largest)
		}
		for label, times := range seen {
			if times != 1 {
				t.Fatalf("level %d holds label %d %d times", level, label, times)
			}
		}
	}
}

func TestPlantedClustersAreFound(t *testing.T) {
	const n, k, dim = 800, 8, 16
	rows := planted(n, k, dim, 0.1)
	best := 0
	for seed := range uint64(3) {
		tree := build(t, rows, dim, Options{Levels: []int{k}, Seed: seed})
		together := 0
		for c := range int32(k) {
			var votes [k]int
			for _, label := range tree.Members(0, c) {
				votes[label%k]++
			}
			together += slices.Max(votes[:])
		}
		best = max(best, together)
	}
	if best < n*85/100 {
		t.Errorf("at best %d of %d labels lie with their like", best, n)
	}
}

func TestTreeIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	rows := planted(5000, 20, 12, 0.8)
	want := build(t, rows, 12, Options{Seed: 3, Workers: 1})
	for _, workers := range []int{2, 3, 16} {
		if got := build(t, rows, 12, Options{Seed: 3, Workers: workers}); !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers built another tree", workers)
		}
	}
	if reflect.DeepEqual(want, build(t, rows, 12, Options{Seed: 4})) {
		t.Error("the seed does not matter")
	}
}

func TestSparseFeaturesGiveAsGoodATree(t *testing.T) {
	const n, dim = 600, 40
	rows := planted(n, 8, dim, 0.2)
	m := &sparse.Matrix{Cols: dim}
	for i := range n {
		var v sparse.Vector
		for j, x := range rows[i*dim : (i+1)*dim] {
			v.Index, v.Value = append(v.Index, int32(j)), append(v.Value, x)
		}
		m.Append(v)
	}
	tree, err := Build(Sparse(m), Options{Levels: []int{8, 32}, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	x, err := Dense(rows, dim)
	if err != nil {
		t.Fatal(err)
	}
	other := build(t, rows, dim, Options{Levels: []int{8, 32}})
	a, b := tree.MeanCosine(1, x, 1), other.MeanCosine(1, Sparse(m), 2)
	if math.Abs(a-b) > 0.01 || a < 0.9 {
		t.Errorf("mean cosine %v on sparse, %v on dense features", a, b)
	}
}

func TestAlikeAndZeroLabels(t *testing.T) {
	rows := make([]float32, 2*40)
	for i := range 40 {
		if i%4 != 0 { // every fourth label has no instances
			rows[2*i] = 1
		}
	}
	tree := build(t, rows, 2, Options{Levels: []int{2, 8}})
	for label := range 40 {
		if got := tree.Cluster(1, label); (got < 0) != (label%4 == 0) {
			t.Errorf("label %d is in leaf %d", label, got)
		}
	}
	// Ties are cut by number.
	if got := tree.Members(0, 0); !slices.IsSorted(got) || got[len(got)-1] > tree.Members(0, 1)[0] {
		t.Errorf("alike labels split into %v and %v", got, tree.Members(0, 1))
	}
	if tree.Cluster(0, 40) != -1 || tree.Cluster(0, -1) != -1 {
		t.Error("an unknown label has a cluster")
	}
}

func TestFeaturesThatCannotBeClustered(t *testing.T) {
	x, err := Dense(make([]float32, 6), 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(x, Options{}); !errors.Is(err, ErrNoLabels) {
		t.Errorf("got %v, want ErrNoLabels", err)
	}
	if x, err = Dense([]float32{1, float32(math.NaN())}, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(x, Options{}); err == nil {
		t.Error("NaN accepted")
	}
	if _, err := Dense(make([]float32, 5), 2); err == nil {
		t.Error("a broken row accepted")
	}
}

func TestSelectNth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		keys := make([]uint64, 1+r.IntN(50))
		for i := range keys {
			keys[i] = uint64(r.IntN(20))<<32 | uint64(i)
		}
		n := r.IntN(len(keys))
		want := slices.Sorted(slices.Values(keys))[:n]
		selectNth(keys, n)
		if got := slices.Sorted(slices.Values(keys[:n])); !slices.Equal(got, want) {
			t.Fatalf("the %d smallest are %v, want %v", n, got, want)
		}
	}
}

func TestOrderedSortsLikeFloats(t *testing.T) {
	v := []float32{float32(math.Inf(-1)), -2, -1e-40, 0, 1e-40, 1, 3, float32(math.Inf(1))}
	for i := 1; i < len(v); i++ {
		if ordered(v[i-1]) >= ordered(v[i]) {
			t.Errorf("%v does not sort before %v", v[i-1], v[i])
		}
	}
	if ordered(float32(math.Copysign(0, -1))) != ordered(0) {
		t.Error("0 and -0 differ")
	}
}

func written(t testing.TB, tree *Tree) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tree.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTreeSurvivesWriteAndRead(t *testing.T) {
	rows := planted(300, 5, 8, 0.5)
	clear(rows[8:16])
	tree := build(t, rows, 8, Options{Levels: []int{2, 8, 16}})
	got, err := Read(bytes.NewReader(written(t, tree)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, tree) {
		t.Error("the tree read differs")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, build(f, planted(30, 5, 8, 0.5), 8, Options{Levels: []int{2, 8}})))
	f.Add(written(f, build(f, planted(60, 5, 8, 0.5), 8, Options{Levels: []int{3, 15}})))
	f.Add([]byte(magic + "\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = datatest.Sealed(b)
		tree, err := Read(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, artifact.ErrCorrupt) && !errors.Is(err, artifact.ErrUnknown) {
				t.Fatalf("error %v is neither ErrCorrupt nor ErrUnknown", err)
			}
			return
		}
		for level := range tree.Levels() {
			tree.Members(level, int32(tree.Clusters(level)-1))
			tree.Cluster(level, 0)
		}
	})
}

func TestTreesOfVersion1AreRead(t *testing.T) {
	tree := build(t, planted(300, 5, 8, 0.5), 8, Options{Levels: []int{2, 8, 16}})
	b := written(t, tree)
	b[8] = version1
	got, err := Read(bytes.NewReader(datatest.Sealed(b)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, tree) {
		t.Error("the tree read differs")
	}
}
