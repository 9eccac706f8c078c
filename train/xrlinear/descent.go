package xrlinear

import (
	"math"
	"slices"

	"giantstream/train/internal/rng"
)

// descent solves one problem after another by dual coordinate descent; one
// per goroutine.
//
// The dual of the L2-loss SVM is
//
//	min over α ≥ 0 of ½ Σ_ij α_i α_j y_i y_j ⟨x_i, x_j⟩ + ½ Σ_i α_i²/(2C) − Σ_i α_i
//
// with w = Σ_i y_i α_i x_i. The gradient of coordinate i is
// y_i⟨w, x_i⟩ + α_i/(2C) − 1; it is a violation unless α_i = 0 and it is
// positive.
type descent struct {
	o     Options
	alpha []float32
	sign  []float32
	// active are the coordinates that take part, in is whether one does.
	active []int32
	in     []bool
}

// gradient returns coordinate k's projected gradient, and the gradient.
func (d *descent) gradient(l *local, margin float32, k int32) (projected, g float64) {
	g = float64(d.sign[k]*margin) + float64(d.alpha[k])*(float64(l.ownSquare[k])+0.5/d.o.Cost) - 1
	if d.alpha[k] == 0 && g > 0 {
		return 0, g
	}
	return g, g
}

// passes descends over the active coordinates until their projected
// gradients lie within tolerance, and returns how many passes are left.
func (d *descent) passes(l *local, s space, r *rng.Source, tolerance float64, left int) int {
	for ; left > 0; left-- {
		r.Shuffle(d.active)
		least, most := math.Inf(1), math.Inf(-1)
		for _, k := range d.active {
			projected, g := d.gradient(l, s.margin(k), k)
			least, most = min(least, projected), max(most, projected)
			if math.Abs(projected) < 1e-12 {
				continue
			}
			before := d.alpha[k]
			after := float32(max(0, float64(before)-g/(float64(l.square[k])+float64(l.ownSquare[k])+0.5/d.o.Cost)))
			if after == before {
				continue
			}
			d.alpha[k] = after
			s.add(k, (after-before)*d.sign[k])
		}
		if most-least <= tolerance {
			return left - 1
		}
	}
	return 0
}

// none solves the problem that has no positives.
func (d *descent) none(l *local, s space, r *rng.Source) {
	n := l.n()
	d.alpha, d.sign = slices.Grow(d.alpha[:0], n)[:n], slices.Grow(d.sign[:0], n)[:n]
	d.active = d.active[:0]
	for k := range n {
		d.alpha[k], d.sign[k] = 0, -1
		d.active = append(d.active, int32(k))
	}
	// More exactly than the children, so that their checks find little.
	d.passes(l, s, r, d.o.Epsilon/4, d.o.Passes)
}

// some solves the problem with the given positives (rows of l), from the
// solution without, whose α are given and which s holds.
func (d *descent) some(l *local, s space, r *rng.Source, alpha []float32, positives []int32) {
	n := l.n()
	d.alpha = append(d.alpha[:0], alpha...)
	d.sign, d.in = slices.Grow(d.sign[:0], n)[:n], slices.Grow(d.in[:0], n)[:n]
	for k := range n {
		d.sign[k], d.in[k] = -1, false
	}
	d.active = d.active[:0]
	for _, k := range positives {
		s.add(k, alpha[k]) // it is no negative any more
		d.alpha[k], d.sign[k], d.in[k] = 0, 1, true
		d.active = append(d.active, k)
	}
	// All gradients within ±ε/2 of zero is within ε of each other.
	for left := d.o.Passes; left > 0; {
		left = d.passes(l, s, r, d.o.Epsilon, left)
		known := len(d.active)
		for k := range int32(n) {
			if d.in[k] {
				continue
			}
			if projected, _ := d.gradient(l, s.margin(k), k); math.Abs(projected) > d.o.Epsilon/2 {
				d.in[k] = true
				d.active = append(d.active, k)
			}
		}
		if len(d.active) == known {
			return
		}
	}
}
