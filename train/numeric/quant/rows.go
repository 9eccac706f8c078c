package quant

import "math"

// least is the smallest range of a row that is told from a row of zeros.
const least = 1e-30

// rows are quantized rows of x: q, and of a fine matrix p.
type rows struct {
	stride  int // words of a row
	parts   [2]rowsPart
	residue []float32 // of a row
}

// rowsPart is q or p.
type rowsPart struct {
	words  []uint32  // stride words a row, a word per group
	scales []float32 // s or s/254
	zeros  []int32   // z or middle
}

// middle is p's zero point: the residue is as often below as above.
const middle = 127

// finer is how many steps of p there are to a step of q.
const finer = 254

// quantize sets r to the rows of x, m.in numbers in each. r gets whole tiles of rows; what is in
// those beyond the last row does not matter.
func (m *Matrix) quantize(r *rows, x []float32, n int) {
	r.stride = roundUp(m.groups, 16)
	if r.stride%256 == 0 {
		r.stride += 16 // or the rows of a tile would fight over sets of the cache
	}
	whole := roundUp(n, m.height)
	q, p := &r.parts[0], &r.parts[1]
	q.resize(whole, r.stride)
	if m.fine {
		p.resize(whole, r.stride)
		r.residue = resize(r.residue, m.in)
	}
	for i := range n {
		row, words := x[i*m.in:(i+1)*m.in], q.words[i*r.stride:][:m.groups]
		low, high, top := m.extremes(row, m.factors)
		span := high - low
		if top >= infinite || span > math.MaxFloat32 || span < least {
			clear(words)
			q.scales[i], q.zeros[i] = 0, 0
			if span >= least || top >= infinite {
				q.scales[i] = float32(math.NaN())
			}
			if m.fine {
				clear(p.words[i*r.stride:][:m.groups])
				p.scales[i], p.zeros[i] = 0, middle
			}
			continue
		}
		inverse := 255 / span
		q.scales[i], q.zeros[i] = span/255, round(float32(-low*inverse))
		m.round(words, row, m.factors, inverse, q.zeros[i])
		if m.fine {
			m.residues(r.residue, row, m.factors, inverse, q.zeros[i])
			p.scales[i], p.zeros[i] = q.scales[i]/finer, middle
			m.round(p.words[i*r.stride:][:m.groups], r.residue, m.ones, finer, middle)
		}
	}
}

// resize makes room for n rows.
func (p *rowsPart) resize(n, stride int) {
	p.words, p.scales, p.zeros = resize(p.words, n*stride), resize(p.scales, n), resize(p.zeros, n)
}

// plainResidues sets out to what q leaves of x·f, in steps of q.
func plainResidues(out, x, f []float32, inverse float32, zero int32) {
	f, out = f[:len(x)], out[:len(x)]
	for k, v := range x {
		v = float32(v * f[k])
		out[k] = float32(v*inverse) - float32(step(v, inverse, zero))
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
