package scatter

import (
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
)

func TestSumAgreesWithDenseAddition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{1, 63, 64, 65, 4096, 4097, 10_000} {
		s := New(dim)
		for range 3 { // a drained sum is as good as new
			dense := make([]float32, dim)
			used := map[int32]bool{}
			for range 5 {
				var v sparse.Vector
				for j := range int32(dim) {
					if r.IntN(20) == 0 || dim == 1 {
						v.Index, v.Value = append(v.Index, j), append(v.Value, r.Float32())
					}
				}
				s.Add(v, 2)
				s.Increment(v.Index)
				for k, j := range v.Index {
					used[j] = true
					dense[j] += 2 * v.Value[k]
					dense[j]++
				}
			}
			got := s.Drain(sparse.Vector{})
			if !slices.IsSorted(got.Index) || len(got.Index) != len(used) {
				t.Fatalf("%d dimensions: drained %v, want the %d in use in order", dim, got.Index, len(used))
			}
			for k, j := range got.Index {
				if got.Value[k] != dense[j] {
					t.Errorf("%d dimensions: value %d is %v, want %v", dim, j, got.Value[k], dense[j])
				}
			}
		}
	}
}

func TestCountIsTheSizeOfTheUnion(t *testing.T) {
	s := New(1000)
	for range 2 {
		s.Mark([]int32{0, 5, 999})
		s.Mark([]int32{5, 64, 999})
		if n := s.Count(); n != 4 {
			t.Errorf("%d dimensions in use, want 4", n)
		}
	}
}
