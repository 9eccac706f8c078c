package quant

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// maxIn bounds the rows of a matrix: the sum of maxIn products of 255 and 127, and half of what 32 bits hold
// besides, fit into 32 bits.
const maxIn = 1 << 15

// maxWeight bounds the numbers of a matrix, so that a factor can divide them.
const maxWeight = 1e30

// Matrix is a quantized matrix of in × out. It is immutable, and safe for concurrent use.
type Matrix struct {
	*kernels
	in, out int
	loud    int       // how many columns of x are loud
	mask    []uint16  // a bit per column of x, the lowest first, for each loud one
	factors []float32 // f: those of the quiet columns of x, in their order, then those of the loud ones
	bits    int       // b: there are 2^b steps of a loud number to one of a quiet number
	unit    float32   // the least s for a loud number of size 1: 2^b over the most steps that are allowed
	groups  [2]int    // words of a row and of a column: of the loud part and of the quiet part
	scales  []float32 // c, per column; of whole panels
	sums    []int32   // Σw over the quiet part, per column; of whole panels
	drift   []float32 // what rounding takes from a product with the mean row of the sample; out of them
	panels  []uint32  // panel by panel, in it group by group, loud ones first, in it a word per column
}

// New quantizes weights (in × out, row-major, not kept) for the fastest kernels of this processor. sample
// has rows like those that will be multiplied, in numbers each, and is not kept. It tells which columns of x
// are loud; without it, none is. fine takes twice as many.
func New(weights []float32, in, out int, sample []float32, fine bool) (*Matrix, error) {
	return newMatrix(fastest(), weights, in, out, sample, fine)
}

func newMatrix(k *kernels, weights []float32, in, out int, sample []float32, fine bool) (*Matrix, error) {
	if in < 1 || in > maxIn || out < 1 || len(weights) != in*out || len(sample)%in != 0 {
		return nil, fmt.Errorf("quant: %d numbers and a sample of %d for a matrix of %d × %d; "+
			"at most %d rows are possible", len(weights), len(sample), in, out, maxIn)
	}
	for i, w := range weights {
		if !(abs(w) <= maxWeight) {
			return nil, fmt.Errorf("quant: number %d of a matrix of %d × %d is %v, more than %g in size", i, in, out, w,
				float64(maxWeight))
		}
	}
	levels, means := measure(sample, in)
	most := largest(weights, in, out)
	loud, quiet := divide(levels, in, fine)
	factors := factorsOf(levels, most)
	columns := roundUp(out, k.width)
	m := &Matrix{kernels: k, in: in, out: out, loud: len(loud), mask: make([]uint16, ceil(in, 16)),
		groups: [2]int{ceil(len(loud), 2), ceil(len(quiet), k.group)},
		scales: make([]float32, columns), sums: make([]int32, columns)}
	m.panels = make([]uint32, columns*(m.groups[0]+m.groups[1]))
	for _, i := range quiet {
		m.factors = append(m.factors, factors[i])
	}
	for _, i := range loud {
		m.mask[i/16] |= 1 << (i % 16)
		m.factors = append(m.factors, factors[i])
	}
	// scale sets scales: a quiet number of W fits into 8 bits, a loud one into 16.
	scale := func(bits int) {
		clear(m.scales)
		for _, part := range []struct {
			columns []int
			most    float32
		}{{quiet, 127}, {loud, float32(int(math.MaxInt16) >> bits)}} {
			for _, i := range part.columns {
				for j, w := range weights[i*out : (i+1)*out] {
					m.scales[j] = max(m.scales[j], abs(w/factors[i])/part.most)
				}
			}
		}
	}
	// step returns how many steps of 2^−bits W[i][j] is.
	step := func(i, j, bits int) int32 {
		c := math.Ldexp(float64(m.scales[j]), -bits)
		if c == 0 {
			return 0
		}
		return int32(math.RoundToEven(float64(weights[i*out+j]/factors[i]) / c))
	}
	for m.bits = maxBits; ; m.bits-- {
		scale(m.bits)
		if limit := m.limit(loud, step); limit >= room<<m.bits || m.bits == 1 {
			m.unit = float32(int(1)<<m.bits) / float32(limit)
			break
		}
	}
	drift := make([]float64, out)
	for at, i := range loud {
		for j := range out {
			w := step(i, j, m.bits)
			m.put(at/2, j, 2, at%2, w)
			drift[j] += means[i] * m.lost(weights[i*out+j], factors[i], w, j, m.bits)
		}
	}
	for at, i := range quiet {
		for j := range out {
			w := step(i, j, 0)
			m.put(m.groups[0]+at/k.group, j, k.group, at%k.group, w)
			m.sums[j] += w
			drift[j] += means[i] * m.lost(weights[i*out+j], factors[i], w, j, 0)
		}
	}
	for _, d := range drift {
		m.drift = append(m.drift, float32(d))
	}
	return m, nil
}

// lost returns what rounding took from a number of column j, which became step steps of 2^−bits.
func (m *Matrix) lost(w, factor float32, step int32, j, bits int) float64 {
	return float64(w) - math.Ldexp(float64(float64(step)*float64(m.scales[j])), -bits)*float64(factor)
}

// measure returns, per column, how large the numbers of the sample get, nil if there are none, and their mean. A mean
// that is not finite is 0.
func measure(sample []float32, in int) (levels []float32, means []float64) {
	means = make([]float64, in)
	if len(sample) == 0 {
		return nil, means
	}
	levels = make([]float32, in)
	for i, v := range sample {
		levels[i%in] = max(levels[i%in], abs(v))
		means[i%in] += float64(v)
	}
	for i := range means {
		means[i] /= float64(len(sample) / in)
		if !(math.Abs(means[i]) <= math.MaxFloat32) {
			means[i] = 0
		}
	}
	return levels, means
}

// A loud number has 2^b steps to one of a quiet number, and so has W there. maxBits is the most that b is, and less
// if the sums leave no room for loud numbers of room steps of a quiet number.
const (
	maxBits = 4
	room    = 4 * 255
)

// maxSum bounds the sum of the products of the loud columns, so that rounding it does not overflow.
const maxSum = math.MaxInt32 - 1<<(2*maxBits)

// limit returns how large p may be, so that no sum of the loud columns exceeds maxSum.
func (m *Matrix) limit(loud []int, step func(i, j, bits int) int32) int {
	limit := math.MaxInt16
	for j := range m.out {
		sum := 1
		for _, i := range loud {
			w := int(step(i, j, m.bits))
			sum += max(w, -w)
		}
		limit = min(limit, maxSum/sum)
	}
	return limit
}

// put stores an integer of column j at a place of the word of group g. A word holds group integers.
func (m *Matrix) put(g, j, group, place int, q int32) {
	bits := 32 / group
	at := (j/m.width*(m.groups[0]+m.groups[1])+g)*m.width + j%m.width
	m.panels[at] |= uint32(q) << (32 - bits) >> (32 - bits) << (place * bits)
}

// One column of x in quietToLoud is loud, or one in fineToLoud for a fine matrix.
const (
	quietToLoud = 4
	fineToLoud  = 2
)

// divide returns the columns of the highest levels, the loud ones, and the others, both in order.
func divide(levels []float32, in int, fine bool) (loud, quiet []int) {
	order := make([]int, in)
	for i := range order {
		order[i] = i
	}
	if levels == nil {
		return nil, order
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(levels[b], levels[a]) })
	n := in / quietToLoud
	if fine {
		n = in / fineToLoud
	}
	slices.Sort(order[:n])
	slices.Sort(order[n:])
	return order[:n], order[n:]
}

// largest returns the greatest |W| of each row.
func largest(weights []float32, in, out int) []float32 {
	most := make([]float32, in)
	for i := range most {
		for _, w := range weights[i*out : (i+1)*out] {
			most[i] = max(most[i], abs(w))
		}
	}
	return most
}

// maxFactor bounds the exponent of a factor.
const maxFactor = 16

// evened is the share of the unevenness of x's columns that the factors take away. W takes it over.
const evened = 0.6

// factorsOf returns f. The numbers of column k of x, of the level L, become (L·M)^(1−evened) in size, where M is the
// greatest |W[k][j]|, and those of row k of W become (L·M)^evened.
func factorsOf(levels, most []float32) []float32 {
	f := make([]float32, len(most))
	for i := range f {
		f[i] = 1
		if levels == nil {
			continue
		}
		e := (1-evened)*math.Log2(float64(most[i])) - evened*math.Log2(float64(levels[i]))
		if e > -maxFactor && e < maxFactor {
			f[i] = float32(math.Ldexp(1, int(math.RoundToEven(e))))
		}
	}
	return f
}

// Bytes is the memory that the matrix takes.
func (m *Matrix) Bytes() int {
	return 4*(len(m.factors)+len(m.drift)+len(m.scales)+len(m.sums)+len(m.panels)) + 2*len(m.mask)
}

func abs(x float32) float32 { return max(x, -x) }

func ceil(a, b int) int    { return (a + b - 1) / b }
func roundUp(a, b int) int { return ceil(a, b) * b }
