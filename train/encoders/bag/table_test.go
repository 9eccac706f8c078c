package bag

import (
	"math"
	"slices"
	"testing"

	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/train/encoders/linear"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

func TestStartIsTheLinearEncoder(t *testing.T) {
	g := graphtest.Topics(150, 3, 8, 1)
	features := graphtest.Words(512).Matrix(g.Texts...)
	p, err := projection.Fit(features, testDim, projection.Options{})
	if err != nil {
		t.Fatal(err)
	}
	weights := make([]float32, testDim*testDim)
	r := numeric.NewRand(1)
	for i := range weights {
		weights[i] = float32(r.Float64() - 0.5)
	}
	m, err := Start(features, p, weights, testDim, 1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	x, want, got := make([]float32, testDim), make([]float32, testDim), make([]float32, testDim)
	for i := range g.Len() {
		p.Apply(features.Row(i), x)
		linear.Project(weights, x, want)
		m.Embed(features.Row(i), got)
		for k := range want {
			if math.Abs(float64(got[k]-want[k])) > 1e-4 {
				t.Fatalf("node %d: bag starts at %v, linear gives %v", i, got, want)
			}
		}
	}
}

func TestTableKeepsTheCommonestFeatures(t *testing.T) {
	x := &sparse.Matrix{Cols: 6}
	for _, row := range [][]int32{{1, 3}, {1, 4}, {1, 4, 5}} {
		x.Append(sparse.Vector{Index: row, Value: make([]float32, len(row))})
	}
	for limit, want := range map[int][]int32{9: {1, 3, 4, 5}, 3: {1, 3, 4}, 1: {1}} {
		if got := chooseFeatures(x, limit); !slices.Equal(got, want) {
			t.Errorf("at most %d: features %v, want %v", limit, got, want)
		}
	}
}
