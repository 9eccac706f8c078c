package heads

import (
	"math"
	"slices"

	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// parameter is an array of weights in training: value, the gradient's sum
// since the last update, and Adam's moments.
type parameter struct{ value, grad, mean, square []float32 }

func newParameter(n int) *parameter {
	return &parameter{make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)}
}

// update takes a step of Adam along the gradient, with the decay added to it
// (as torch.numeric.Adam's weight_decay), and clears it.
func (p *parameter) update(rate, decay float64, step int64) {
	numeric.Axpy(float32(decay), p.value, p.grad)
	numeric.Adam(p.value, p.mean, p.square, p.grad, numeric.AdamRate(rate, step))
	clear(p.grad)
}

// dense is the layer y = x·Wᵀ + b.
type dense struct {
	in, out int
	w, b    *parameter // out×in, out
}

// newDense starts W at uniform numbers in ±1/√fan, as torch.nn.Linear with
// fan inputs, and b at zero.
func newDense(in, out, fan int, r *numeric.Rand) *dense {
	l := &dense{in: in, out: out, w: newParameter(in * out), b: newParameter(out)}
	bound := 1 / math.Sqrt(float64(fan))
	for i := range l.w.value {
		l.w.value[i] = float32(bound * (2*r.Float64() - 1))
	}
	return l
}

// forward writes the outputs for the rows of x to y.
func (l *dense) forward(x, y []float32) {
	rows := len(x) / l.in
	for k := range rows {
		copy(y[k*l.out:(k+1)*l.out], l.b.value)
	}
	numeric.Gemm(numeric.TransB, rows, l.out, l.in, x, l.w.value, y[:rows*l.out])
}

// backward adds the gradients of W and b, given the inputs and the gradient of
// the outputs. Unless dx is nil it becomes the gradient of the inputs.
func (l *dense) backward(x, dy, dx []float32) {
	rows := len(x) / l.in
	for k := range rows {
		numeric.Axpy(1, dy[k*l.out:(k+1)*l.out], l.b.grad)
	}
	numeric.Gemm(numeric.TransA, l.out, l.in, rows, dy, x, l.w.grad)
	if dx != nil {
		clear(dx)
		numeric.Gemm(numeric.NoTrans, rows, l.in, l.out, dy, l.w.value, dx)
	}
}

// rectify is ReLU, in place.
func rectify(x []float32) {
	for i, v := range x {
		x[i] = max(v, 0)
	}
}

// drop is ReLU and dropout in place: what is left is scaled so that the mean stays.
func drop(x []float32, rate float64, r *numeric.Rand) {
	rectify(x)
	if rate == 0 {
		return
	}
	scale := float32(1 / (1 - rate))
	for i := range x {
		if r.Float64() < rate {
			x[i] = 0
		} else {
			x[i] *= scale
		}
	}
}

// undrop turns the gradient of drop's outputs y into the gradient of its inputs.
func undrop(y, grad []float32, rate float64) {
	scale := float32(1 / (1 - rate))
	for i, v := range y {
		if v > 0 {
			grad[i] *= scale
		} else {
			grad[i] = 0
		}
	}
}

// standardized returns x (rows of dim) with each column at mean 0 and
// deviation 1; a column that does not vary becomes 0.
func standardized(x []float32, dim, workers int) []float32 {
	rows := len(x) / dim
	sum, squares := make([]float64, dim), make([]float64, dim)
	for i := range rows {
		for d, v := range x[i*dim : (i+1)*dim] {
			sum[d] += float64(v)
			squares[d] += float64(v) * float64(v)
		}
	}
	mean, scale := make([]float32, dim), make([]float32, dim)
	n := float64(max(rows, 1))
	for d := range dim {
		m := sum[d] / n
		mean[d] = float32(m)
		if v := squares[d]/n - m*m; v > 1e-12*(squares[d]/n) {
			scale[d] = float32(1 / math.Sqrt(v))
		}
	}
	out := make([]float32, len(x))
	parallel.ForEach(rows, 256, workers, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			for d, v := range x[i*dim : (i+1)*dim] {
				out[i*dim+d] = (v - mean[d]) * scale[d]
			}
		}
	})
	return out
}

// grown returns a slice of n numbers, s if it has the room. What it holds is
// undefined.
func grown(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }
