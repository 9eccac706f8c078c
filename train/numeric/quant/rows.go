package quant

import "math"

// least is the smallest range of a row that is told from a row of zeros.
const least = 1e-30

// rows are quantized rows of x.
type rows struct {
	words  []uint32 // stride words a row, a word per group
	stride int
	scales []float32 // s
	zeros  []int32   // z
}

// quantize sets r to the rows of x, m.in numbers in each. r gets whole tiles of rows; what is in
// those beyond the last row does not matter.
func (m *Matrix) quantize(r *rows, x []float32, n int) {
	r.stride = roundUp(m.groups, 16)
	if r.stride%256 == 0 {
		r.stride += 16 // or the rows of a tile would fight over sets of the cache
	}
	whole := roundUp(n, m.height)
	r.words = resize(r.words, whole*r.stride)
	r.scales, r.zeros = resize(r.scales, whole), resize(r.zeros, whole)
	for i := range n {
		row, words := x[i*m.in:(i+1)*m.in], r.words[i*r.stride:][:m.groups]
		low, high, top := m.extremes(row, m.factors)
		span := high - low
		if top >= infinite || span > math.MaxFloat32 || span < least {
			clear(words)
			r.scales[i], r.zeros[i] = 0, 0
			if span >= least || top >= infinite {
				r.scales[i] = float32(math.NaN())
			}
			continue
		}
		inverse := 255 / span
		r.scales[i], r.zeros[i] = span/255, round(float32(-low*inverse))
		m.round(words, row, m.factors, inverse, r.zeros[i])
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

// round is the next integer, the even one of two.
func round(x float32) int32 { return int32(math.RoundToEven(float64(x))) }

// step is q − z of a number, times its factor.
func step(v, inverse float32, zero int32) int32 {
	return min(max(round(float32(v*inverse)), -zero), 255-zero)
}

func resize[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}
