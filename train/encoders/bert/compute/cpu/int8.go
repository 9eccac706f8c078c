package cpu

import (
	"fmt"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/numeric/quant"
	"giantstream/train/numeric/simd"
)

// Int8 implements compute.Int8 with package quant.
type Int8 struct{ *Backend }

var (
	_ compute.Quantizer = (*Backend)(nil)
	_ compute.Int8      = Int8{}
)

// Int8 implements compute.Quantizer.
func (be *Backend) Int8() compute.Int8 { return Int8{be} }

// Spread implements compute.Backend.
func (be Int8) Spread(workers int) compute.Backend {
	return Int8{be.Backend.Spread(workers).(*Backend)}
}

// matrix is a quantized matrix in the place of a Linear's Weight.
type matrix struct{ *quant.Matrix }

// Len implements compute.Buffer.
func (m matrix) Len() int { return m.Bytes() / 4 }

// Quantize implements compute.Int8.
func (Int8) Quantize(l *compute.Linear, sample []float32, fine bool) (*compute.Linear, error) {
	m, err := quant.New(numbers(l.Weight), l.In, l.Out, sample, fine)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return &compute.Linear{In: l.In, Out: l.Out, Weight: matrix{m}, Bias: l.Bias}, nil
}

// Linear implements compute.Forward. A Linear that is not quantized is computed in float32.
func (be Int8) Linear(dst, x compute.Buffer, rows int, l *compute.Linear, a compute.Activation) {
	m, ok := l.Weight.(matrix)
	if !ok {
		be.Backend.Linear(dst, x, rows, l, a)
		return
	}
	out, in, bias := numbers(dst), numbers(x), numbers(l.Bias)
	be.forEachBlock(rows, int8Rows, func(_ *scratch, _, lo, hi int) {
		y := out[lo*l.Out : hi*l.Out]
		m.Multiply(y, in[lo*l.In:hi*l.In], hi-lo, bias)
		if a == compute.GELU {
			simd.FastGELU(y, y) // while it is in the cache
		}
	})
	if a == compute.Tanh {
		be.Activate(dst, dst, rows*l.Out, a)
	}
}

// int8Rows is how many rows a goroutine takes at a time: whole tiles, whose inputs and outputs fit into the
// second-level cache.
const int8Rows = 112

// Activate implements compute.Forward.
func (be Int8) Activate(dst, x compute.Buffer, n int, a compute.Activation) {
	if a != compute.GELU {
		be.Backend.Activate(dst, x, n, a)
		return
	}
	out, in := numbers(dst), numbers(x)
	be.forEachBlock(n, blockNumbers, func(_ *scratch, _, lo, hi int) { simd.FastGELU(out[lo:hi], in[lo:hi]) })
}

// AddNorm implements compute.Forward.
func (be Int8) AddNorm(dst, x, residual compute.Buffer, rows int, n *compute.Norm) {
	out, a, b := numbers(dst), numbers(x), numbers(residual)
	gain, bias := numbers(n.Gain)[:n.Width], numbers(n.Bias)
	w := n.Width
	be.forEachBlock(rows, blockRows, func(_ *scratch, _, lo, hi int) {
		for r := lo * w; r < hi*w; r += w {
			simd.AddNorm(out[r:r+w], a[r:r+w], b[r:r+w], gain, bias, n.Epsilon)
		}
	})
}

// lanes is how many numbers package simd computes at a time.
const lanes = 8

// Attend implements compute.Forward.
func (be Int8) Attend(dst, qkv compute.Buffer, b compute.Batch, heads, width int, d compute.Dropout) {
	if b.Seeds != nil && d.Rate > 0 {
		be.Backend.Attend(dst, qkv, b, heads, width, d)
		return
	}
	out := numbers(dst)
	be.heads(numbers(qkv), b, heads, width, func(a *attention, h head) {
		columns := (h.n + lanes - 1) / lanes * lanes // a softmax without a rest
		h.weigh(a, columns)
		multiply(plain, plain, h.n, h.width, h.n, 1, a.scores, columns, h.v, h.stride, 0,
			out[h.first*h.all+h.at:], h.all)
	})
}
