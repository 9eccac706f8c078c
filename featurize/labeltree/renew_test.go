package labeltree

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// unitRows draws rows of length 1 about centres.
func unitRows(r *rand.Rand, centres [][]float32, n, dim int) []float32 {
	out := make([]float32, 0, n*dim)
	for range n {
		c := centres[r.IntN(len(centres))]
		row := make([]float32, dim)
		var square float64
		for j := range row {
			row[j] = c[j] + 0.3*float32(r.NormFloat64())
			square += float64(row[j]) * float64(row[j])
		}
		for j := range row {
			row[j] /= float32(math.Sqrt(square))
		}
		out = append(out, row...)
	}
	return out
}

// Labels stay in their clusters but below the subtrees that are divided anew; new ones are in one leaf each; gone ones
// in none. Without changes the tree is the same.
func TestRenewKeepsTheOtherClusters(t *testing.T) {
	const n, dim = 2000, 12
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		var centres [][]float32
		for range 40 {
			c := make([]float32, dim)
			for j := range c {
				c[j] = float32(r.NormFloat64())
			}
			centres = append(centres, c)
		}
		values := unitRows(r, centres, n, dim)
		x, err := Dense(values, dim)
		if err != nil {
			t.Fatal(err)
		}
		opt := Options{MaxLeafSize: 8, Seed: seed, Workers: 2}
		old, err := Build(x, opt)
		if err != nil {
			t.Fatal(err)
		}
		from := make([]int32, n)
		for i := range from {
			from[i] = int32(i)
		}
		same, err := Renew(old, from, x, 0.1, opt)
		if err != nil || !reflect.DeepEqual(same, old) {
			t.Fatalf("nothing has changed, but the tree has (%v)", err)
		}
		// A fortieth has gone, and one centre has many more.
		from = slices.DeleteFunc(from, func(int32) bool { return r.IntN(40) == 0 })
		var now []float32
		for _, i := range from {
			now = append(now, values[int(i)*dim:(int(i)+1)*dim]...)
		}
		now = append(now, unitRows(r, [][]float32{centres[0]}, 200, dim)...)
		for range 200 {
			from = append(from, -1)
		}
		y, err := Dense(now, dim)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Renew(old, from, y, 0.1, opt)
		if err != nil {
			t.Fatal(err)
		}
		checkRenewed(t, old, got, from)
		opt.Workers = 1
		if again, err := Renew(old, from, y, 0.1, opt); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("one worker makes another tree (%v)", err)
		}
	}
}

func checkRenewed(t *testing.T, old, got *Tree, from []int32) {
	t.Helper()
	last := old.Levels() - 1
	level, divided := Divided(old, got, from)
	if len(divided) == 0 || len(divided) > old.Clusters(level)/2 {
		t.Fatalf("%d of %d subtrees were divided anew", len(divided), old.Clusters(level))
	}
	for i, j := range from {
		switch leaf := got.Cluster(last, i); {
		case leaf < 0:
			t.Errorf("label %d is in no leaf", i)
		case j >= 0 && got.Cluster(level, i) != old.Cluster(level, int(j)):
			t.Errorf("label %d has left its subtree", i)
		}
	}
}
