package simd

import "math"

// Softmax turns x into exp(x)/Σ exp(x). It subtracts the maximum first, so that nothing overflows.
// An empty x stays empty.
func Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	if !accelerated() {
		softmax(x)
		return
	}
	n := len(x) &^ 7
	top := x[len(x)-1]
	for _, v := range x[n:] {
		top = max(top, v)
	}
	var sum float32
	if n > 0 {
		top = max(top, maximum(&x[0], n))
		sum = expSum(&x[0], n, top)
	}
	if n < len(x) {
		var rest [8]float32
		pad := float32(math.Inf(-1)) // adds exp(−∞) = 0
		for i := copy(rest[:], x[n:]); i < 8; i++ {
			rest[i] = pad
		}
		sum += expSum(&rest[0], 8, top)
		copy(x[n:], rest[:])
	}
	f := 1 / sum
	if n > 0 {
		scale(&x[0], n, f)
	}
	for i := n; i < len(x); i++ {
		x[i] *= f
	}
}

func softmax(x []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		x[i] = exp(v-top, 0)
		sum += x[i]
	}
	f := 1 / sum
	for i := range x {
		x[i] *= f
	}
}

// exp is e to the power x+low, for x ≤ 0 and a small low.
func exp(x, low float32) float32 {
	if !(x >= -87) {
		if x != x {
			return x
		}
		return 0
	}
	// x = k·ln 2 + r with |r| ≤ ½·ln 2. ln 2 has two parts, the first of so
	// few digits that k times it is exact. The polynomial of eʳ is minimax.
	const ln2High, ln2Low = 0.693359375, -2.12194440e-4
	k := int32(x*math.Log2E - 0.5)
	r := x - float32(k)*ln2High - float32(k)*ln2Low + low
	p := float32(0.0013951719738543034)
	p = p*r + 0.008369598537683487
	p = p*r + 0.0416661873459816
	p = p*r + 0.16666512191295624
	p = p*r + 0.5
	p = p*r + 1
	p = p*r + 1
	return p * math.Float32frombits(uint32(k+127)<<23)
}
