package cpu

import (
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/bert/compute"
)

// Backend implements compute.Backend.
type Backend struct {
	gelu    gelu
	scratch sync.Pool // *attention
}

var _ compute.Backend = (*Backend)(nil)

// New returns a backend.
func New() *Backend {
	b := &Backend{gelu: newGELU()}
	b.scratch.New = func() any { return new(attention) }
	return b
}

type buffer []float32

func (b buffer) Len() int { return len(b) }

// numbers returns a buffer's array. A buffer of another backend is a mistake
// of the program.
func numbers(b compute.Buffer) []float32 { return b.(buffer) }

// New implements compute.Backend.
func (*Backend) New(n int) compute.Buffer { return make(buffer, n) }

// Upload implements compute.Backend; the buffer is data itself.
func (*Backend) Upload(data []float32) compute.Buffer { return buffer(data) }

// Read implements compute.Backend.
func (*Backend) Read(dst []float32, src compute.Buffer) error {
	if n := copy(dst, numbers(src)); n < len(dst) {
		return fmt.Errorf("cpu: read %d numbers of a buffer of %d", len(dst), n)
	}
	return nil
}

// Embed implements compute.Backend.
func (*Backend) Embed(dst compute.Buffer, b compute.Batch, e *compute.Embedding) {
	w := e.Norm.Width
	words, positions, kind := numbers(e.Words), numbers(e.Positions), numbers(e.Types)[:w]
	out, gain, bias := numbers(dst), numbers(e.Norm.Gain), numbers(e.Norm.Bias)
	for i := range b.Texts() {
		first := int(b.Start[i])
		for r := first; r < int(b.Start[i+1]); r++ {
			row := out[r*w : (r+1)*w]
			word := words[int(b.IDs[r])*w:][:w]
			position := positions[(r-first)*w:][:w]
			for j := range row {
				row[j] = word[j] + position[j] + kind[j]
			}
			normalize(row, gain, bias, e.Norm.Epsilon)
		}
	}
}

// Linear implements compute.Backend.
func (be *Backend) Linear(dst, x compute.Buffer, rows int, l *compute.Linear, a compute.Activation) {
	out, bias := numbers(dst)[:rows*l.Out], numbers(l.Bias)
	for r := 0; r < len(out); r += l.Out {
		copy(out[r:r+l.Out], bias)
	}
	multiply(rows, l.Out, l.In, 1, numbers(x), l.In, numbers(l.Weight), l.Out, 1, out, l.Out)
	switch a {
	case compute.GELU:
		for i, v := range out {
			out[i] = be.gelu.at(v)
		}
	case compute.Tanh:
		for i, v := range out {
			out[i] = float32(math.Tanh(float64(v)))
		}
	}
}

// multiply is C = alpha·A·B + beta·C; A is m×k, B is k×n, with the strides lda, ldb, ldc.
func multiply(m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	blas32.Implementation().Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// AddNorm implements compute.Backend.
func (*Backend) AddNorm(dst, x, residual compute.Buffer, rows int, n *compute.Norm) {
	out, a, b := numbers(dst), numbers(x), numbers(residual)
	gain, bias := numbers(n.Gain), numbers(n.Bias)
	for r := 0; r < rows*n.Width; r += n.Width {
		row, x, y := out[r:r+n.Width], a[r:r+n.Width], b[r:r+n.Width]
		for j := range row {
			row[j] = x[j] + y[j]
		}
		normalize(row, gain, bias, n.Epsilon)
	}
}

// normalize is layer normalisation of one row, in place.
func normalize(row, gain, bias []float32, epsilon float64) {
	var sum float64
	for _, v := range row {
		sum += float64(v)
	}
	mean := sum / float64(len(row))
	var squares float64
	for _, v := range row {
		d := float64(v) - mean
		squares += d * d
	}
	scale := float32(1 / math.Sqrt(squares/float64(len(row))+epsilon))
	shift := float32(mean)
	gain, bias = gain[:len(row)], bias[:len(row)]
	for j, v := range row {
		row[j] = (v-shift)*scale*gain[j] + bias[j]
	}
}

// Pool implements compute.Backend.
func (*Backend) Pool(dst, x compute.Buffer, b compute.Batch, width int, p compute.Pooling) {
	out, rows := numbers(dst), numbers(x)
	for i := range b.Texts() {
		first, end := int(b.Start[i]), int(b.Start[i+1])
		row := out[i*width : (i+1)*width]
		copy(row, rows[first*width:])
		if p == compute.First {
			continue
		}
		for r := first + 1; r < end; r++ {
			for j, v := range rows[r*width : (r+1)*width] {
				row[j] += v
			}
		}
		for j := range row {
			row[j] /= float32(end - first)
		}
	}
}
