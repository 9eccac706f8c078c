package numeric

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// ErrNoRotation: no rotation takes rows to others, because numbers are missing or not finite.
var ErrNoRotation = errors.New("no rotation")

// Procrustes returns the dim×dim orthogonal matrix R, row-major, for which rows·R is nearest to others (both n×dim)
// in the sense of least squares: R = UVᵀ for the singular value decomposition UΣVᵀ of rowsᵀ·others (Schönemann 1966).
// Rotate applies R, and leaves all cosines between rows as they are. Directions in which rows or others do not
// reach are rotated in some way, the same for the same input.
func Procrustes(rows, others []float32, dim int) ([]float32, error) {
	if dim < 1 || len(rows)%dim != 0 || len(rows) != len(others) {
		return nil, fmt.Errorf("%w: %d numbers and %d are not as many rows of %d", ErrNoRotation, len(rows), len(others),
			dim)
	}
	sum, err := sumOfProducts(rows, others, dim)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRotation, err)
	}
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(dim, dim, sum), mat.SVDFull) {
		return nil, fmt.Errorf("%w: the singular vectors did not converge", ErrNoRotation)
	}
	var u, v, r mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	r.Mul(&u, v.T())
	rotation := make([]float32, dim*dim)
	for i := range dim {
		for j := range dim {
			rotation[i*dim+j] = float32(r.At(i, j))
		}
	}
	return rotation, nil
}

// sumOfProducts returns Σ x yᵀ (dim×dim, row-major) over the rows x of a and y of b.
func sumOfProducts(a, b []float32, dim int) ([]float64, error) {
	sum, part := make([]float64, dim*dim), make([]float32, dim*dim)
	for at := 0; at < len(a); at += axesBlock * dim {
		x, y := a[at:min(at+axesBlock*dim, len(a))], b[at:min(at+axesBlock*dim, len(b))]
		clear(part)
		Gemm(TransA, dim, dim, len(x)/dim, x, y, part)
		for i, v := range part {
			sum[i] += float64(v)
		}
	}
	// Not even NaN − NaN is 0.
	for i, v := range sum {
		if v-v != 0 {
			return nil, fmt.Errorf("the sum of products %d, %d is %v", i/dim, i%dim, v)
		}
	}
	return sum, nil
}
