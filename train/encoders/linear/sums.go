package linear

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"giantstream/train/numeric"
)

// ErrSingular: the sums do not determine a solution.
var ErrSingular = errors.New("the normal equations are singular; there are too few instances or λ is too small")

// Sums are the normal equations of a weighted least-squares problem from Rank
// to Dim numbers. The zero value is not usable; see NewSums.
type Sums struct {
	Rank, Dim int
	// G is Σ w x xᵀ (Rank×Rank), B is Σ w x tᵀ (Rank×Dim).
	G, B []float64
	// Targets is Σ w ‖t‖², Rows the number of instances.
	Targets float64
	Rows    int64

	g, b []float32 // scratch of Add
}

// NewSums returns empty sums.
func NewSums(rank, dim int) *Sums {
	return &Sums{Rank: rank, Dim: dim, G: make([]float64, rank*rank), B: make([]float64, rank*dim)}
}

// Add adds rows: x is rows×Rank, t rows×Dim, both already multiplied by √w. Pass a few hundred to a
// few thousand rows at a time: the rows of a call are summed in float32, the calls in float64.
func (s *Sums) Add(x, t []float32) {
	rows := len(x) / s.Rank
	if s.g == nil {
		s.g, s.b = make([]float32, len(s.G)), make([]float32, len(s.B))
	}
	clear(s.g)
	clear(s.b)
	numeric.Gemm(numeric.TransA, s.Rank, s.Rank, rows, x, x, s.g)
	numeric.Gemm(numeric.TransA, s.Rank, s.Dim, rows, x, t, s.b)
	for i, v := range s.g {
		s.G[i] += float64(v)
	}
	for i, v := range s.b {
		s.B[i] += float64(v)
	}
	for _, v := range t {
		s.Targets += float64(v) * float64(v)
	}
	s.Rows += int64(rows)
}

// Merge adds the sums of other rows.
func (s *Sums) Merge(o *Sums) error {
	if s.Rank != o.Rank || s.Dim != o.Dim {
		return fmt.Errorf("linear: sums of %d→%d and %d→%d do not merge", s.Rank, s.Dim, o.Rank, o.Dim)
	}
	for i, v := range o.G {
		s.G[i] += v
	}
	for i, v := range o.B {
		s.B[i] += v
	}
	s.Targets += o.Targets
	s.Rows += o.Rows
	return nil
}

// Solve returns W (Rank×Dim) for a regularisation of lambda times the mean
// diagonal of G, so that lambda does not depend on the number of rows.
func (s *Sums) Solve(lambda float64) ([]float64, error) {
	var trace float64
	for i := range s.Rank {
		trace += s.G[i*s.Rank+i]
	}
	ridge := lambda * trace / float64(s.Rank)
	g := mat.NewSymDense(s.Rank, nil)
	for i := range s.Rank {
		for j := i; j < s.Rank; j++ {
			g.SetSym(i, j, s.G[i*s.Rank+j])
		}
		g.SetSym(i, i, g.At(i, i)+ridge)
	}
	var c mat.Cholesky
	if trace == 0 || math.IsNaN(trace) || math.IsInf(trace, 0) || !c.Factorize(g) {
		return nil, fmt.Errorf("linear: %w", ErrSingular)
	}
	w := mat.NewDense(s.Rank, s.Dim, nil)
	if err := c.SolveTo(w, mat.NewDense(s.Rank, s.Dim, s.B)); err != nil {
		var cond mat.Condition
		if !errors.As(err, &cond) {
			return nil, fmt.Errorf("linear: %w: %w", ErrSingular, err)
		}
		// Badly conditioned but solved: Fit judges the solution by its residual.
	}
	return w.RawMatrix().Data, nil
}

// Error returns Σ w ‖Wᵀx − t‖² as a share of Σ w ‖t‖² over the rows behind
// the sums: 1 − R² about the origin. It is NaN without rows.
func (s *Sums) Error(w []float64) float64 {
	W := mat.NewDense(s.Rank, s.Dim, w)
	var gw mat.Dense
	gw.Mul(mat.NewDense(s.Rank, s.Rank, s.G), W)
	e := s.Targets
	for i, v := range gw.RawMatrix().Data {
		e += w[i] * (v - 2*s.B[i])
	}
	return e / s.Targets
}
