package labeltree

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// A trunk and its branches, each divided on its own, are the tree that Build makes.
func TestTrunkAndBranchesAreTheTree(t *testing.T) {
	const n, dim = 3000, 12
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, n*dim)
	for i := range n {
		if i%97 == 0 {
			continue // no features
		}
		row := values[i*dim : (i+1)*dim]
		for k := range row {
			row[k] = float32(r.IntN(7)-3) + 4*float32(boolInt(k == i%5)) // many equal scores
		}
	}
	dense, err := Dense(values, dim)
	if err != nil {
		t.Fatal(err)
	}
	rows := Rows{Len: n, Dim: dim, Read: func(lo, hi int, out []float32) error {
		copy(out, values[lo*dim:hi*dim])
		return nil
	}}
	for _, opt := range []Options{{Sample: 50, MaxLeafSize: 8}, {Sample: 200, MaxLeafSize: 6, Branching: 3, Seed: 7},
		{Levels: []int{10, 50, 250}, Sample: 30}, {}} {
		opt.Workers = 2
		whole, err := Build(dense, opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, branches := range []int{1, 2, 5, 16, 128} {
			trunk, err := Grow(rows, opt, branches)
			if err != nil {
				t.Fatal(err)
			}
			if len(trunk.Branches) > branches || opt.Sample == 50 && branches == 16 && len(trunk.Branches) < 16 {
				t.Errorf("%d branches, want %d", len(trunk.Branches), branches)
			}
			leafOf := make([]int32, n)
			for i := range leafOf {
				leafOf[i] = -1
			}
			for k, b := range trunk.Branches {
				var members []int
				var features []float32
				for i := range n {
					if trunk.BranchOf(i) == k {
						members = append(members, i)
						features = append(features, values[i*dim:(i+1)*dim]...)
					}
				}
				leaves, err := b.Leaves(trunk.Levels, features, dim, opt)
				if err != nil {
					t.Fatal(err)
				}
				for k, i := range members {
					leafOf[i] = leaves[k]
				}
			}
			joined, err := FromLeaves(trunk.Levels, leafOf)
			if err != nil {
				t.Fatal(err)
			}
			var a, b bytes.Buffer
			if err := errors.Join(whole.Write(&a), joined.Write(&b)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%+v, %d branches: another tree", opt, branches)
			}
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestTrunkOfNothing(t *testing.T) {
	rows := Rows{Len: 5, Dim: 2, Read: func(_, _ int, out []float32) error { clear(out); return nil }}
	if _, err := Grow(rows, Options{}, 4); !errors.Is(err, ErrNoLabels) {
		t.Errorf("Grow = %v, want ErrNoLabels", err)
	}
	broken := errors.New("broken")
	rows.Read = func(int, int, []float32) error { return broken }
	if _, err := Grow(rows, Options{}, 4); !errors.Is(err, broken) {
		t.Errorf("Grow = %v, want %v", err, broken)
	}
}
