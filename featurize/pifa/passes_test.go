package pifa

import (
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
)

// A sketch made in passes has the sums of one made in memory, to the last bit.
func TestPassesGiveTheSameSums(t *testing.T) {
	const n, dim = 2*passBlock + 100, 6
	r := rand.New(rand.NewPCG(1, 2))
	y := &sparse.Matrix{Cols: n, Start: []int64{0}}
	for i := range n {
		var row sparse.Vector
		for range r.IntN(5) {
			if l := int32(r.IntN(n)); !slices.Contains(row.Index, l) && int(l) != i {
				row.Index = append(row.Index, l)
			}
		}
		slices.Sort(row.Index)
		y.Append(row)
	}
	projected := make([]float32, n*dim)
	for i := range projected {
		projected[i] = float32(r.NormFloat64())
	}
	for _, w := range []Weighting{Sum, InverseSqrtDegree} {
		want, err := FromGraph(projected, dim, y, w, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, workers := range []int{1, 3} {
			got, err := FromPass(dim, y, w, workers, func(lo, hi int, out []float32) error {
				copy(out, projected[lo*dim:hi*dim])
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.sums, want.sums) || !slices.Equal(got.count, want.count) {
				t.Errorf("%v, %d workers: sums differ", w, workers)
			}
			if !slices.Equal(got.Normalize(), want.Normalized()) {
				t.Errorf("%v, %d workers: embeddings differ", w, workers)
			}
		}
	}
}
