package bag

import (
	"math"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/numeric"
)

// table holds the n-grams' vectors.
type table struct {
	dim int
	// features[r] is the feature of row r, ascending; row[f] is the row of
	// feature f, -1 if it has none.
	features []int32
	row      []int32
	vectors  []float32 // rows×dim
}

// newTable returns a table of zeros for the given features (ascending) of a
// vectorizer of cols features.
func newTable(features []int32, cols, dim int) *table {
	t := &table{dim: dim, features: features, row: make([]int32, cols), vectors: make([]float32, len(features)*dim)}
	for f := range t.row {
		t.row[f] = -1
	}
	for r, f := range features {
		t.row[f] = int32(r)
	}
	return t
}

// chooseFeatures returns the features of x from a number on that most rows hold, at most limit,
// ascending; ties go to the lower feature. Features in no row are left out.
func chooseFeatures(x Features, limit int) []int32 {
	rows, cols := x.Size()
	count := make([]int32, cols)
	for i := range rows {
		for _, f := range x.Row(i).Index {
			count[f]++
		}
	}
	var chosen []int32
	for f, c := range count {
		if c > 0 {
			chosen = append(chosen, int32(f))
		}
	}
	if len(chosen) > limit {
		slices.SortStableFunc(chosen, func(a, b int32) int { return int(count[b]) - int(count[a]) })
		chosen = slices.Clone(chosen[:limit])
		slices.Sort(chosen)
	}
	return chosen
}

// linearStart sets every vector to its feature's projection times weights.
func (t *table) linearStart(p train.Projection, weights []float32, workers int) {
	rank := p.Dim()
	parallel.ForEach(len(t.features), 64, workers, func(_, _, lo, hi int) {
		x := make([]float32, (hi-lo)*rank)
		unit := sparse.Vector{Index: make([]int32, 1), Value: []float32{1}}
		for r := lo; r < hi; r++ {
			unit.Index[0] = t.features[r]
			p.Apply(unit, x[(r-lo)*rank:(r-lo+1)*rank])
		}
		numeric.Gemm(numeric.NoTrans, hi-lo, t.dim, rank, x, weights, t.vectors[lo*t.dim:hi*t.dim])
	})
}

// vector is that of a row.
func (t *table) vector(row int) []float32 { return t.vectors[row*t.dim : (row+1)*t.dim] }

// adagrad moves a row against its gradient g by row-wise Adagrad (Duchi et al. 2011;
// square has one accumulator per row, of the mean squared gradients). It returns the
// squared length of g. Adagrad does not see the scale of gradients.
func (t *table) adagrad(row int, square, g []float32, rate float32) float32 {
	length := numeric.Dot(g, g)
	square[row] += length / float32(t.dim)
	if square[row] > 0 {
		numeric.Axpy(-rate/float32(math.Sqrt(float64(square[row]))), g, t.vector(row))
	}
	return length
}

// add adds h of a vector of features to out.
func (t *table) add(v sparse.Vector, out []float32) {
	for k, f := range v.Index {
		if int(f) < len(t.row) && t.row[f] >= 0 {
			numeric.Axpy(v.Value[k], t.vector(int(t.row[f])), out)
		}
	}
}

// embed writes Φ to out for a vector of features; it stays zero where no
// feature has a vector.
func (t *table) embed(v sparse.Vector, out []float32) {
	clear(out)
	t.add(v, out)
	numeric.Normalize(out)
}

// Features are the rows of Ψ: a *sparse.Matrix, or one that is not in memory.
// Row i must be the same whenever it is asked for, and safe to ask for from
// several goroutines.
type Features interface {
	Size() (rows, cols int)
	Row(i int) sparse.Vector
}
