package quant

import "math"

// least is the smallest s of a row that is not taken for zeros.
const least = 1e-30

// rows are quantized rows of x: p, then q.
type rows struct {
	stride      int       // words of a row
	words       []uint32  // stride words a row, a word per group
	scales      []float32 // s
	zeros       []int32   // z
	loud, quiet []float32 // of one row of x, with room behind
}

// behind is how many numbers more kernels.split may write.
const behind = 16

// quantize sets r to the rows of x, m.in numbers in each. r gets whole tiles of rows; what is in
// those beyond the last row does not matter.
func (m *Matrix) quantize(r *rows, x []float32, n int) {
	groups := m.groups[0] + m.groups[1]
	r.stride = roundUp(groups, 16)
	if r.stride%256 == 0 {
		r.stride += 16 // or the rows of a tile would fight over sets of the cache
	}
	whole := roundUp(n, m.height)
	r.words, r.scales, r.zeros = resize(r.words, whole*r.stride), resize(r.scales, whole), resize(r.zeros, whole)
	r.loud, r.quiet = resize(r.loud, m.loud+behind), resize(r.quiet, m.in-m.loud+behind)
	loud, quiet := r.loud[:m.loud], r.quiet[:m.in-m.loud]
	ofQuiet, ofLoud := m.factors[:len(quiet)], m.factors[len(quiet):]
	for i := range n {
		row, words := x[i*m.in:(i+1)*m.in], r.words[i*r.stride:][:groups]
		if m.loud == 0 {
			quiet = row
		} else {
			m.split(r.quiet, r.loud, row, m.mask)
		}
		low, high, top := m.extremes(quiet, ofQuiet)
		_, _, topLoud := m.extremes(loud, ofLoud)
		span := high - low
		if max(top, topLoud) >= infinite || span > math.MaxFloat32 {
			clear(words)
			r.scales[i], r.zeros[i] = float32(math.NaN()), 0
			continue
		}
		s := max(span/255, float32(math.Float32frombits(topLoud)*m.unit))
		if s < least {
			clear(words)
			r.scales[i], r.zeros[i] = 0, 0
			continue
		}
		inverse := 1 / s
		r.scales[i], r.zeros[i] = s, round(float32(-low*inverse))
		m.roundLoud(words[:m.groups[0]], loud, ofLoud, float32(inverse*float32(int(1)<<m.bits)))
		m.round(words[m.groups[0]:], quiet, ofQuiet, inverse, r.zeros[i])
	}
}

// infinite is the lowest pattern of bits of a positive number that is infinite or none.
const infinite = 0x7f800000

// plainExtremes returns the least and the greatest of x·f and 0, and the greatest pattern of bits of
// an |x·f|.
func plainExtremes(x, f []float32) (low, high float32, top uint32) {
	f = f[:len(x)]
	for k, v := range x {
		v = float32(v * f[k])
		bits := math.Float32bits(v) &^ (1 << 31)
		top = max(top, bits)
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	return low, high, top
}

// plainSplit copies the numbers of x to quiet, or to loud where mask has a bit.
func plainSplit(quiet, loud, x []float32, mask []uint16) {
	l := 0
	for i, v := range x {
		if mask[i/16]>>(i%16)&1 == 1 {
			loud[l] = v
			l++
		} else {
			quiet[i-l] = v
		}
	}
}

// round is the next integer, the even one of two.
func round(x float32) int32 { return int32(math.RoundToEven(float64(x))) }

// pack sets words to the steps of the numbers of x·f, from lowest to highest, plus add, group of them to a word.
func pack(words []uint32, x, f []float32, inverse float32, lowest, highest, add int32, group int) {
	clear(words)
	bits := 32 / group
	for k, v := range x {
		q := min(max(round(float32(float32(v*f[k])*inverse)), lowest), highest) + add
		words[k/group] |= uint32(q) << (32 - bits) >> (32 - bits) << (k % group * bits)
	}
}

func resize[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}
