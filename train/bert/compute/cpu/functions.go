package cpu

import "math"

// exp is eˣ for x ≤ 0, with a relative error below 3·10⁻⁷; below −87, where
// float32 has no normal numbers left, it is 0.
func exp(x float32) float32 {
	if !(x > -87) {
		if x != x {
			return x
		}
		return 0
	}
	// x = k·ln 2 + r with |r| ≤ ½·ln 2, and ln 2 in two parts, the first of
	// so few digits that k times it is exact.
	const ln2High, ln2Low = 0.693359375, -2.12194440e-4
	k := int32(x*math.Log2E - 0.5)
	r := x - float32(k)*ln2High - float32(k)*ln2Low
	p := float32(1.0 / 720)
	p = p*r + 1.0/120
	p = p*r + 1.0/24
	p = p*r + 1.0/6
	p = p*r + 0.5
	p = p*r + 1
	p = p*r + 1
	return p * math.Float32frombits(uint32(k+127)<<23)
}

const (
	geluReach = 6  // where Φ is 1 in float32
	geluSteps = 32 // table entries per unit
)

// gelu is x·Φ(x) by cubic interpolation between tabulated values and slopes
// of Φ, the normal distribution function; the interpolation is off by less
// than 2·10⁻⁹, so float32 rounding is all there is.
type gelu []struct{ value, slope float32 } // the slope per step

func newGELU() gelu {
	g := make(gelu, 2*geluReach*geluSteps+2)
	for i := range g {
		x := float64(i)/geluSteps - geluReach
		g[i].value = float32(0.5 * math.Erfc(-x/math.Sqrt2))
		g[i].slope = float32(math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) / geluSteps)
	}
	return g
}

func (g gelu) at(x float32) float32 {
	if x <= -geluReach {
		return 0
	}
	if !(x < geluReach) { // or NaN
		return x
	}
	return x * g.normal(x)
}

// derivative is that of x·Φ(x): Φ(x) + x·φ(x).
func (g gelu) derivative(x float32) float32 {
	if x <= -geluReach {
		return 0
	}
	if !(x < geluReach) {
		if x != x {
			return x
		}
		return 1
	}
	return g.normal(x) + x*exp(-x*x/2)*float32(1/2.5066282746310002) // √(2π)
}

// normal is Φ(x) within the reach.
func (g gelu) normal(x float32) float32 {
	t := (x + geluReach) * geluSteps
	i := int(t)
	t -= float32(i)
	a, b := g[i], g[i+1]
	// Hermite: the cubic with these values and slopes at both ends.
	d := b.value - a.value
	return a.value + t*(a.slope+t*((3*d-2*a.slope-b.slope)+t*(a.slope+b.slope-2*d)))
}
