package quant

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
	parts   [2]part   // w and v
	// loud are the columns of x that are multiplied in float32, rest the rows of W for them.
	loud []int
	rest []float32
	fine bool      // rows of x are in two parts, too
	ones []float32 // factors of the second part, in of them where fine
}

// part is w or v.
type part struct {
	scales []float32 // c or c/254, per column; of whole panels
	sums   []int32   // per column; of whole panels
	panels []uint32  // panel by panel, in it group by group, in it a word per column
}

// New quantizes weights (in × out, row-major, not kept) for the fastest kernels of this processor.
// levels has, per row of the matrix, how large the numbers that it is multiplied by get; nil if they
// are alike. fine takes the rows that it multiplies in two parts of eight bits, at half as much work again.
func New(weights []float32, in, out int, levels []float32, fine bool) (*Matrix, error) {
	return with(fastest(), weights, in, out, levels, fine)
}

func with(k *kernels, weights []float32, in, out int, levels []float32, fine bool) (*Matrix, error) {
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
	m := &Matrix{kernels: k, in: in, out: out, groups: ceil(in, k.group), factors: factorsOf(weights, in, out, levels),
		loud: loudest(levels), fine: fine}
	if fine {
		m.ones = slices.Repeat([]float32{1}, in)
	}
	for _, i := range m.loud {
		m.factors[i] = 0
		m.rest = append(m.rest, weights[i*out:(i+1)*out]...)
	}
	for p := range m.parts {
		m.parts[p] = part{scales: make([]float32, columns), sums: make([]int32, columns),
			panels: make([]uint32, columns*m.groups)}
	}
	high, low := &m.parts[0], &m.parts[1]
	for i := range in {
		if m.factors[i] == 0 {
			continue
		}
		for j, w := range weights[i*out : (i+1)*out] {
			high.scales[j] = max(high.scales[j], abs(w/m.factors[i]))
		}
	}
	for j, v := range high.scales {
		high.scales[j], low.scales[j] = v/127, v/127/254
	}
	for i := range in {
		for j, w := range weights[i*out : (i+1)*out] {
			if low.scales[j] == 0 || m.factors[i] == 0 {
				continue
			}
			c := float64(high.scales[j])
			steps := float64(w/m.factors[i]) / c
			whole := math.RoundToEven(steps)
			m.put(high, i, j, int32(whole))
			m.put(low, i, j, int32(math.RoundToEven(float64(steps-whole)*254)))
		}
	}
	return m, nil
}

// put stores an integer of row i and column j.
func (m *Matrix) put(p *part, i, j int, q int32) {
	bits := 32 / m.group
	at := (j/m.width*m.groups+i/m.group)*m.width + j%m.width
	p.panels[at] |= uint32(q) << (32 - bits) >> (32 - bits) << (i % m.group * bits)
	p.sums[j] += q
}

// quiet is how many columns of x there are to a loud one.
const quiet = 32

// loudest returns the columns of the highest levels.
func loudest(levels []float32) []int {
	order := make([]int, len(levels))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(levels[b], levels[a]) })
	loud := order[:len(levels)/quiet]
	slices.Sort(loud)
	return loud
}

// maxFactor bounds the exponent of a factor.
const maxFactor = 16

// evened is the share of the unevenness of x's columns that the factors take away. W, which has twice as
// many bits, takes it over.
const evened = 0.75

// factorsOf returns f. The numbers of column k of x, of the level L, become L^(1−evened) · M^(1−evened) in
// size, where M is the greatest |W[k][j]|.
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
		e := (1-evened)*math.Log2(float64(most)) - evened*math.Log2(float64(levels[i]))
		if e > -maxFactor && e < maxFactor {
			f[i] = float32(math.Ldexp(1, int(math.RoundToEven(e))))
		}
	}
	return f
}

// Out is the number of columns.
func (m *Matrix) Out() int { return m.out }

// Bytes is the memory that the matrix takes.
func (m *Matrix) Bytes() int {
	p := &m.parts[0]
	return 4 * (len(m.factors) + len(m.ones) + len(m.rest) + len(m.parts)*(len(p.scales)+len(p.sums)+len(p.panels)))
}

func abs(x float32) float32 { return max(x, -x) }

func ceil(a, b int) int    { return (a + b - 1) / b }
func roundUp(a, b int) int { return ceil(a, b) * b }
