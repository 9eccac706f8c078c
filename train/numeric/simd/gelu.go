package simd

import "math"

// GELU sets dst to x·Φ(x), element by element; the lengths must be equal.
func GELU(dst, x []float32) {
	if !accelerated() {
		for i, v := range x {
			dst[i] = geluOf(v)
		}
		return
	}
	n := len(x) &^ 7
	if n > 0 {
		gelu(&dst[:len(x)][0], &x[0], n)
	}
	if n < len(x) {
		var in, out [8]float32
		copy(in[:], x[n:])
		gelu(&out[0], &in[0], 8)
		copy(dst[n:len(x)], out[:])
	}
}

// GELUBackward sets dst to d times the derivative of GELU at x, Φ(x) + x·φ(x);
// the lengths must be equal.
func GELUBackward(dst, d, x []float32) {
	if !accelerated() {
		for i, v := range x {
			dst[i] = d[i] * geluSlopeOf(v)
		}
		return
	}
	n := len(x) &^ 7
	if n > 0 {
		geluSlope(&dst[:len(x)][0], &d[:len(x)][0], &x[0], n)
	}
	if n < len(x) {
		var in, slope, out [8]float32
		copy(in[:], x[n:])
		copy(slope[:], d[n:len(x)])
		geluSlope(&out[0], &slope[0], &in[0], 8)
		copy(dst[n:len(x)], out[:])
	}
}

// reach is where Φ(−t) is 0 in float32.
const reach = 13.19

// tail returns e = exp(−t²/2) and Mills' ratio M, of which e·M = Φ(−t), t ≥ 0.
func tail(t float32) (e, mills float32) {
	if t >= reach {
		return 0, 0
	}
	square := t * t
	low := float32(float64(t)*float64(t) - float64(square))
	s := 1 / (1 + 0.3*t)
	// Minimax in the relative error, 3.4·10⁻⁹ before rounding.
	m := float32(-0.02057897485792637)
	m = m*s + 0.11218512058258057
	m = m*s - 0.22760125994682312
	m = m*s + 0.19093306362628937
	m = m*s - 0.07868277281522751
	m = m*s + 0.09573967754840851
	m = m*s + 0.07854140549898148
	m = m*s + 0.11020111292600632
	m = m*s + 0.11957617849111557
	m = m*s + 0.11968645453453064
	return exp(-0.5*square, -0.5*low), m * s
}

func geluOf(x float32) float32 {
	t := float32(math.Abs(float64(x)))
	e, m := tail(t)
	return max(x, 0) - min(t, reach)*(e*m)
}

func geluSlopeOf(x float32) float32 {
	t := float32(math.Abs(float64(x)))
	e, m := tail(t)
	h := e * (m - min(t, reach)*float32(1/math.Sqrt2/math.SqrtPi))
	if x < 0 {
		return h
	}
	return 1 - h
}
