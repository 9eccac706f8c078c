package projection

import (
	"fmt"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
)

// Projection is a linear map from Cols sparse features to Dim dense
// dimensions. It is immutable and safe for concurrent use.
type Projection struct {
	cols, dim int

	// A fitted projection maps feature j to row slot[j] of matrix (stride
	// floats per row, of which the first dim count), or to zero if slot[j] < 0.
	slot     []int32
	matrix   []float32
	stride   int
	singular []float64

	// A random one (slot == nil) computes its rows from the seed.
	seed uint64
}

// Cols returns the number of features of the vectors it takes.
func (p *Projection) Cols() int { return p.cols }

// Dim returns the number of dimensions.
func (p *Projection) Dim() int { return p.dim }

// Singular returns the singular values that belong to the dimensions,
// descending; nil for a random projection.
func (p *Projection) Singular() []float64 { return p.singular }

// Truncate returns the projection to the first k dimensions. It shares the
// memory of p.
func (p *Projection) Truncate(k int) (*Projection, error) {
	if k < 1 || k > p.dim {
		return nil, fmt.Errorf("projection: cannot truncate %d dimensions to %d", p.dim, k)
	}
	if p.slot == nil {
		return nil, fmt.Errorf("projection: a random projection cannot be truncated; make one of %d dimensions", k)
	}
	q := *p
	q.dim, q.singular = k, p.singular[:k]
	return &q, nil
}

// Apply writes the projection of v to out[:Dim()]. Features outside the
// projection count as zero.
func (p *Projection) Apply(v sparse.Vector, out []float32) {
	out = out[:p.dim]
	clear(out)
	if p.slot == nil {
		p.applyRandom(v, out)
		return
	}
	y := blas32.Vector{N: p.dim, Inc: 1, Data: out}
	for k, j := range v.Index {
		if int(j) >= len(p.slot) || p.slot[j] < 0 {
			continue
		}
		row := p.matrix[int(p.slot[j])*p.stride:]
		blas32.Axpy(v.Value[k], blas32.Vector{N: p.dim, Inc: 1, Data: row}, y)
	}
}

// ApplyAll returns the projections of all rows of x, Rows × Dim row-major
// (workers ≤ 0: one per CPU).
func (p *Projection) ApplyAll(x *sparse.Matrix, workers int) []float32 {
	out := make([]float32, x.Rows*p.dim)
	parallel.ForEach(x.Rows, 64, workers, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			p.Apply(x.Row(i), out[i*p.dim:])
		}
	})
	return out
}
