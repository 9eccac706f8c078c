package numeric

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// ErrNoAxes: rows have no principal axes, because they hold a number that is not finite.
var ErrNoAxes = errors.New("no principal axes")

// axesBlock is how many rows are summed in float32 before they are added in float64.
const axesBlock = 256

// PrincipalAxes returns the dim×dim orthogonal matrix R, row-major, that orders the dimensions of
// rows (n×dim) by energy: the columns of R are the eigenvectors of Σ x xᵀ, about the origin and not
// about the mean, by descending eigenvalue. Rotate applies R. Rotated rows have the cosines that they
// had, and the first k of their numbers are the best k that any rotation gives in the sense of
// least squares.
//
// Of the two signs of each column, the one with a positive component of the largest size is taken.
func PrincipalAxes(rows []float32, dim int) ([]float32, error) {
	if dim < 1 || len(rows)%dim != 0 {
		return nil, fmt.Errorf("%w: %d numbers are not rows of %d", ErrNoAxes, len(rows), dim)
	}
	sum, err := sumOfProducts(rows, rows, dim)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoAxes, err)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(dim, sum), true) {
		return nil, fmt.Errorf("%w: the eigenvectors did not converge", ErrNoAxes)
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	axes := make([]float32, dim*dim)
	for k := range dim {
		column := dim - 1 - k // eigenvalues ascend
		largest := 0.0
		for i := range dim {
			if v := vectors.At(i, column); math.Abs(v) > math.Abs(largest) {
				largest = v
			}
		}
		for i := range dim {
			axes[i*dim+k] = float32(math.Copysign(1, largest) * vectors.At(i, column))
		}
	}
	return axes, nil
}

// Rotate replaces rows (n×dim) by rows·axes (dim×dim). A row's result does not depend on the rows
// beside it.
func Rotate(rows, axes []float32, dim int) {
	out := make([]float32, axesBlock*dim)
	for at := 0; at < len(rows); at += axesBlock * dim {
		x := rows[at:min(at+axesBlock*dim, len(rows))]
		y := out[:len(x)]
		clear(y)
		Gemm(NoTrans, len(x)/dim, dim, dim, x, axes, y)
		copy(x, y)
	}
}
