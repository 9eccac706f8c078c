package numeric

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Dot returns a·b; the lengths must be equal.
func Dot(a, b []float32) float32 {
	return blas32.Implementation().Sdot(len(a), a, 1, b, 1)
}

// Axpy adds alpha·x to y.
func Axpy(alpha float32, x, y []float32) {
	blas32.Implementation().Saxpy(len(x), alpha, x, 1, y, 1)
}

// Normalize scales x to length 1 and returns its former length; a zero
// vector stays as it is.
func Normalize(x []float32) float32 {
	var s float64
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	if s == 0 {
		return 0
	}
	norm := math.Sqrt(s)
	f := float32(1 / norm)
	for i := range x {
		x[i] *= f
	}
	return float32(norm)
}

// NormalizeBackward turns the gradient dz with respect to z = h/‖h‖ into that with
// respect to h, (∂/∂z − ⟨∂/∂z, z⟩ z) / ‖h‖; zero where h is.
func NormalizeBackward(z []float32, norm float32, dz []float32) {
	if norm == 0 {
		clear(dz)
		return
	}
	Axpy(-Dot(dz, z), z, dz)
	for i := range dz {
		dz[i] /= norm
	}
}

// Transposed says which operands of Gemm are stored transposed.
type Transposed uint8

// The forms of Gemm.
const (
	NoTrans Transposed = iota // A is m×k, B is k×n
	TransA                    // A is stored k×m
	TransB                    // B is stored n×k
)

// Gemm adds op(A)·op(B) to C (m×n), with an inner dimension k.
func Gemm(t Transposed, m, n, k int, a, b, c []float32) {
	ta, tb, lda, ldb := blas.NoTrans, blas.NoTrans, k, n
	switch t {
	case TransA:
		ta, lda = blas.Trans, m
	case TransB:
		tb, ldb = blas.Trans, k
	}
	blas32.Implementation().Sgemm(ta, tb, m, n, k, 1, a, lda, b, ldb, 1, c, n)
}
