package nodemap

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/train/generation/eval"
)

// rings are points on circles in pairs of dimensions of their own: no two directions show them all.
func rings(n, count int) (vectors []float32, dim int) {
	r := rand.New(rand.NewPCG(1, 1))
	dim = 2 * count
	vectors = make([]float32, n*dim)
	for i := range n {
		at := i % count
		angle := 2 * math.Pi * r.Float64()
		vectors[i*dim+2*at], vectors[i*dim+2*at+1] = float32(math.Cos(angle)), float32(math.Sin(angle))
	}
	return vectors, dim
}

func nearest(vectors []float32, dim, k int) [][]eval.Neighbour {
	queries := make([]int32, len(vectors)/dim)
	for i := range queries {
		queries[i] = int32(i)
	}
	return eval.Nearest(vectors, dim, queries, k)
}

func TestUnfoldKeepsNeighboursThatPCALoses(t *testing.T) {
	vectors, dim := rings(300, 5)
	near := nearest(vectors, dim, neighbours)
	flat := principal(vectors, dim)
	unfolded := unfold(near, flat)
	if got, was := preserved(near, unfolded), preserved(near, flat); got < 0.8 || got < was+0.2 {
		t.Errorf("%.2f of the neighbours are kept, %.2f by PCA", got, was)
	}
	if again := unfold(near, flat); !slices.Equal(again, unfolded) {
		t.Error("a second map differs")
	}
}

func TestPrincipalFindsTheDirectionsOfMostVariance(t *testing.T) {
	// (x, y, z) with deviations 1, 3, 0.1 about (5, 5, 5): the axes are y, then x.
	r := rand.New(rand.NewPCG(3, 3))
	var vectors []float32
	for range 500 {
		vectors = append(vectors, float32(5+r.NormFloat64()), float32(5+3*r.NormFloat64()),
			float32(5+0.1*r.NormFloat64()))
	}
	var first, second float64
	for _, p := range principal(vectors, 3) {
		first += p[0] * p[0] / 500
		second += p[1] * p[1] / 500
	}
	if math.Abs(math.Sqrt(first)-3) > 0.3 || math.Abs(math.Sqrt(second)-1) > 0.1 {
		t.Errorf("deviations %.2f and %.2f, want 3 and 1", math.Sqrt(first), math.Sqrt(second))
	}
}

func TestMapsOfDegenerateEmbeddings(t *testing.T) {
	for name, vectors := range map[string][]float32{
		"all zero": make([]float32, 40*4),
		"all same": slices.Repeat([]float32{1, 0, 0, 0}, 40),
		"three":    {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0},
	} {
		near := nearest(vectors, 4, min(neighbours, len(vectors)/4-1))
		for _, p := range unfold(near, principal(vectors, 4)) {
			if math.IsNaN(p[0]) || math.IsInf(p[0], 0) || math.IsNaN(p[1]) || math.IsInf(p[1], 0) {
				t.Errorf("%s: a node lies at %v", name, p)
				break
			}
		}
	}
}
