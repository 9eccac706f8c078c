package eval

import (
	"math"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/numeric"
)

// Edge is a link between two nodes, by position.
type Edge struct{ Src, Dst int32 }

// Split hides about fraction of g's edges: it returns g without them and
// lists them, each once, in order of position. Whether an edge is hidden
// depends on the seed and its two ids alone, whatever the order or the
// direction in which the graph states it; both directions go together.
func Split(g *train.Graph, fraction float64, seed uint64) (*train.Graph, []Edge) {
	n := g.Len()
	ids := make([]uint64, n)
	for i, id := range g.IDs {
		ids[i] = numeric.HashString(id)
	}
	known := &sparse.Matrix{Rows: n, Cols: n, Start: make([]int64, 1, n+1)}
	var hidden []Edge
	for i := range n {
		row := g.Neighbours.Row(i)
		for k, j := range row.Index {
			if !Hide(ids[i], ids[j], fraction, seed) {
				known.Index = append(known.Index, j)
				if row.Value != nil {
					known.Value = append(known.Value, row.Value[k])
				}
				continue
			}
			if int32(i) < j || !linked(g.Neighbours, int(j), int32(i)) {
				hidden = append(hidden, Edge{int32(i), j})
			}
		}
		known.Start = append(known.Start, int64(len(known.Index)))
	}
	return &train.Graph{IDs: g.IDs, Texts: g.Texts, Classes: g.Classes, Neighbours: known}, hidden
}

// Hide says whether Split hides an edge, given the hashes of its ends' ids (numeric.HashString).
func Hide(a, b uint64, fraction float64, seed uint64) bool {
	r := numeric.NewRand(seed, min(a, b), max(a, b))
	return r.Float64() < fraction
}

// meanAndError returns the mean and its standard error.
func meanAndError(sum, squares float64, n int) (mean, stderr float64) {
	if n == 0 {
		return 0, 0
	}
	mean = sum / float64(n)
	if n > 1 {
		v := (squares - sum*mean) / float64(n-1)
		stderr = math.Sqrt(max(v, 0) / float64(n))
	}
	return mean, stderr
}
