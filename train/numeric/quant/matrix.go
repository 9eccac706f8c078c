package quant

import (
	"fmt"
	"math"
)

// maxIn bounds the rows of a matrix: the sum of so many products of 255 and 127 fits into 32 bits.
const maxIn = 1 << 16

// maxWeight bounds the numbers of a matrix, so that a factor can divide them.
const maxWeight = 1e30

// Matrix is a quantized matrix of in × out. It is immutable, and safe for concurrent use.
type Matrix struct {
	*kernels
	in, out int
	groups  int       // of a row of x: in, divided by kernels.group and rounded up
	factors []float32 // f, per row of the matrix; in of them
	scales  []float32 // c, per column; of whole panels
	sums    []int32   // Σ w over k, per column; of whole panels
	panels  []uint32  // panel by panel, in it group by group, in it a word per column
}

// New quantizes weights (in × out, row-major, not kept) for the fastest kernels of this processor.
// levels has, per row of the matrix, how large the numbers that it is multiplied by get; nil if they
// are alike.
func New(weights []float32, in, out int, levels []float32) (*Matrix, error) {
	return with(fastest(), weights, in, out, levels)
}

func with(k *kernels, weights []float32, in, out int, levels []float32) (*Matrix, error) {
	if in < 1 || in > maxIn || out < 1 || len(weights) != in*out || (levels != nil && len(levels) != in) {
		return nil, fmt.Errorf("quant: %d numbers and %d levels for a matrix of %d × %d; at most %d rows are possible",
			len(weights), len(levels), in, out, maxIn)
	}
	for i, w := range weights {
		if !(abs(w) <= maxWeight) {
			return nil, fmt.Errorf("quant: number %d of a matrix of %d × %d is %v, more than %g in size", i, in, out, w,
				float64(maxWeight))
		}
	}
	columns := roundUp(out, k.width)
	m := &Matrix{
		kernels: k, in: in, out: out, groups: ceil(in, k.group),
		factors: factorsOf(weights, in, out, levels),
		scales:  make([]float32, columns), sums: make([]int32, columns),
	}
	m.panels = make([]uint32, columns*m.groups)
	most := make([]float32, out)
	for i := range in {
		for j, w := range weights[i*out : (i+1)*out] {
			most[j] = max(most[j], abs(w/m.factors[i]))
		}
	}
	for j, v := range most {
		m.scales[j] = v / 127
	}
	bits := 32 / k.group
	for i := range in {
		group, shift := i/k.group, i%k.group*bits
		for j, w := range weights[i*out : (i+1)*out] {
			if m.scales[j] == 0 {
				continue
			}
			q := int32(math.RoundToEven(float64(w/m.factors[i]) / float64(m.scales[j])))
			m.sums[j] += q
			at := (j/k.width*m.groups+group)*k.width + j%k.width
			m.panels[at] |= uint32(q) << (32 - bits) >> (32 - bits) << shift
		}
	}
	return m, nil
}

// maxFactor bounds the exponent of a factor.
const maxFactor = 16

// factorsOf returns f. The numbers of column k of x, times f[k], become about
// √(level of x · greatest |W[k]|) in size, and those of W the same: each side takes half of the
// unevenness.
func factorsOf(weights []float32, in, out int, levels []float32) []float32 {
	f := make([]float32, in)
	for i := range f {
		f[i] = 1
		if levels == nil {
			continue
		}
		var most float32
		for _, w := range weights[i*out : (i+1)*out] {
			most = max(most, abs(w))
		}
		if half := math.Log2(float64(most)/float64(levels[i])) / 2; half > -maxFactor && half < maxFactor {
			f[i] = float32(math.Ldexp(1, int(math.RoundToEven(half))))
		}
	}
	return f
}

// Out is the number of columns.
func (m *Matrix) Out() int { return m.out }

// Bytes is the memory that the matrix takes.
func (m *Matrix) Bytes() int {
	return 4 * (len(m.factors) + len(m.scales) + len(m.sums) + len(m.panels))
}

func abs(x float32) float32 { return max(x, -x) }

func ceil(a, b int) int    { return (a + b - 1) / b }
func roundUp(a, b int) int { return ceil(a, b) * b }
