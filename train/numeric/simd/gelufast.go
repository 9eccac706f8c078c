package simd

// FastGELU sets dst to x·Φ(x) with an absolute error below 2·10⁻⁴, in a third of GELU's time: for results
// that are rounded to eight bits next. The lengths must be equal. Nothing is fused: the bits are the
// same everywhere.
func FastGELU(dst, x []float32) {
	dst = dst[:len(x)]
	n := 0
	if accelerated() {
		if n = len(x) &^ 7; n > 0 {
			fastGELU(&dst[0], &x[0], n)
		}
	}
	for i, v := range x[n:] {
		dst[n+i] = fastGELUOf(v)
	}
}

// fastReach is where the polynomial of Φ reaches 1 and ends.
const fastReach = 4

// fastGELUOf is x·Φ(x), with Φ(t) − ½ an odd polynomial that is minimax in the error of x·Φ(x).
func fastGELUOf(x float32) float32 {
	t := min(max(x, -fastReach), fastReach)
	u := float32(t * t)
	p := float32(float32(2.2784758968441565e-08)*u) - 1.5987710639819852e-06
	p = float32(p*u) + 4.7958834329620004e-05
	p = float32(p*u) - 0.0008140470599755645
	p = float32(p*u) + 0.008772537112236023
	p = float32(p*u) - 0.06457342207431793
	p = float32(p*u) + 0.3978835642337799
	p = float32(p*t) + 0.5
	return x * min(max(p, 0), 1)
}
