package cpu

import (
	"math"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/numeric/simd"
)

// Linear implements compute.Forward.
func (be *Backend) Linear(dst, x compute.Buffer, rows int, l *compute.Linear, a compute.Activation) {
	out, bias := numbers(dst)[:rows*l.Out], numbers(l.Bias)
	be.forEachBlock(rows, blockRows, func(_ *scratch, _, lo, hi int) {
		for r := lo; r < hi; r++ {
			copy(out[r*l.Out:(r+1)*l.Out], bias)
		}
	})
	multiply(plain, plain, rows, l.Out, l.In, 1, numbers(x), l.In, numbers(l.Weight), l.Out, 1, out, l.Out)
	if a != compute.Identity {
		be.Activate(dst, dst, len(out), a)
	}
}

// LinearBackward implements compute.Backward.
func (*Backend) LinearBackward(dx, dy compute.Buffer, rows int, l *compute.Linear, add bool) {
	var beta float32
	if add {
		beta = 1
	}
	multiply(plain, transposed, rows, l.In, l.Out, 1, numbers(dy), l.Out, numbers(l.Weight), l.Out, beta,
		numbers(dx), l.In)
}

// LinearGradient implements compute.Backward.
func (be *Backend) LinearGradient(g *compute.Linear, x, dy compute.Buffer, rows int) {
	multiply(transposed, plain, g.In, g.Out, rows, 1, numbers(x), g.In, numbers(dy), g.Out, 1, numbers(g.Weight), g.Out)

	bias, y := numbers(g.Bias), numbers(dy)
	// A column is summed on one goroutine, so its order of addition is fixed.
	be.forEachBlock(g.Out, biasColumns, func(s *scratch, _, lo, hi int) {
		s.rows = resize(s.rows, hi-lo)
		clear(s.rows)
		for r := range rows {
			add(s.rows, y[r*g.Out+lo:r*g.Out+hi])
		}
		add(bias[lo:hi], s.rows)
	})
}

// biasColumns is how many columns of a bias's gradient are added up together.
const biasColumns = 128

// add adds x to sum.
func add(sum, x []float32) {
	blas32.Implementation().Saxpy(len(x), 1, x, 1, sum, 1)
}

// Activate implements compute.Forward.
func (be *Backend) Activate(dst, x compute.Buffer, n int, a compute.Activation) {
	out, in := numbers(dst), numbers(x)
	be.forEachBlock(n, blockNumbers, func(_ *scratch, _, lo, hi int) {
		from, to := in[lo:hi], out[lo:hi]
		switch a {
		case compute.Identity:
			copy(to, from)
		case compute.GELU:
			simd.GELU(to, from)
		case compute.Tanh:
			for i, v := range from {
				to[i] = float32(math.Tanh(float64(v)))
			}
		}
	})
}

// ActivateBackward implements compute.Backward.
func (be *Backend) ActivateBackward(dx, dy, x compute.Buffer, n int, a compute.Activation) {
	out, slope, in := numbers(dx), numbers(dy), numbers(x)
	be.forEachBlock(n, blockNumbers, func(_ *scratch, _, lo, hi int) {
		from, d, to := in[lo:hi], slope[lo:hi], out[lo:hi]
		switch a {
		case compute.Identity:
			copy(to, d)
		case compute.GELU:
			simd.GELUBackward(to, d, from)
		case compute.Tanh:
			for i, v := range from {
				t := float32(math.Tanh(float64(v)))
				to[i] = d[i] * (1 - t*t)
			}
		}
	})
}
