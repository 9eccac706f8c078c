package numeric

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/internal/parallel"
	"giantstream/internal/vector"
)

// Dot returns a·b; the lengths must be equal.
func Dot(a, b []float32) float32 {
	return blas32.Implementation().Sdot(len(a), a, 1, b, 1)
}

// Axpy adds alpha·x to y.
func Axpy(alpha float32, x, y []float32) {
	blas32.Implementation().Saxpy(len(x), alpha, x, 1, y, 1)
}

// Cosine returns the cosine of two vectors of the same length, 0 if one of them is zero.
func Cosine(a, b []float32) float64 {
	lengths := math.Sqrt(float64(Dot(a, a)) * float64(Dot(b, b)))
	if lengths == 0 {
		return 0
	}
	return min(1, max(-1, float64(Dot(a, b))/lengths))
}

// Softmax replaces scores by exp(score)/Σ exp, and returns ln Σ exp: the cross-entropy of shares q that
// sum to 1 is that less Σ q·score. There must be a score. simd.Softmax is faster and less precise.
func Softmax(scores []float32) (logSum float64) {
	top := slices.Max(scores) // nothing overflows
	var sum float64
	for i, s := range scores {
		e := math.Exp(float64(s - top))
		scores[i] = float32(e)
		sum += e
	}
	for i := range scores {
		scores[i] = float32(float64(scores[i]) / sum)
	}
	return float64(top) + math.Log(sum)
}

// Normalize scales x to length 1 and returns its former length; a zero vector stays as it is.
func Normalize(x []float32) float32 { return vector.Normalize(x) }

// NormalizeRows scales each row of length dim to length 1; zero rows stay zero.
func NormalizeRows(rows []float32, dim int) {
	parallel.ForEach(len(rows)/dim, 1024, 0, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			Normalize(rows[i*dim : (i+1)*dim])
		}
	})
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
