// Package vector holds the few dense kernels that training and evaluation
// share, on float32 and row-major matrices, through gonum's BLAS seam: a
// faster implementation registered with blas32.Use serves here too.
//
// Results do not depend on the number of CPUs. Axpy, and Gemm without a
// transposed B, add in index order. Dot adds in lanes that depend on b's
// address modulo 16, which is the same in every run for the same place in an
// array, since Go aligns arrays of more than 24 bytes to 16.
package vector

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

// Denormalize turns the gradient dz with respect to z = h/‖h‖ into that with
// respect to h, (∂/∂z − ⟨∂/∂z, z⟩ z) / ‖h‖; zero where h is.
func Denormalize(z []float32, norm float32, dz []float32) {
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
	None Transposed = iota // A is m×k, B is k×n
	A                      // A is stored k×m
	B                      // B is stored n×k
)

// Gemm adds op(A)·op(B) to C (m×n), with an inner dimension k.
func Gemm(t Transposed, m, n, k int, a, b, c []float32) {
	ta, tb, lda, ldb := blas.NoTrans, blas.NoTrans, k, n
	switch t {
	case A:
		ta, lda = blas.Trans, m
	case B:
		tb, ldb = blas.Trans, k
	}
	blas32.Implementation().Sgemm(ta, tb, m, n, k, 1, a, lda, b, ldb, 1, c, n)
}
