package cpu

import (
	"math"

	"giantstream/train/encoders/bert/compute"
)

// Zero implements compute.Optimizer.
func (be *Backend) Zero(x compute.Buffer) {
	all := numbers(x)
	be.forEachBlock(len(all), blockNumbers, func(_ *scratch, _, lo, hi int) { clear(all[lo:hi]) })
}

// Squares implements compute.Optimizer.
func (be *Backend) Squares(dst compute.Buffer, i int, x compute.Buffer) {
	all := numbers(x)
	sums := make([]float64, (len(all)+blockNumbers-1)/blockNumbers)
	be.forEachBlock(len(all), blockNumbers, func(_ *scratch, block, lo, hi int) {
		var s float64
		for _, v := range all[lo:hi] {
			s += float64(v) * float64(v)
		}
		sums[block] = s
	})
	var s float64
	for _, v := range sums {
		s += v
	}
	numbers(dst)[i] = float32(s)
}

// AdamW implements compute.Optimizer.
func (be *Backend) AdamW(w, mean, square, g, squares compute.Buffer, s *compute.Step) {
	var norm float64
	for _, v := range numbers(squares) {
		norm += float64(v)
	}
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		be.Zero(g)
		return
	}
	a := newAdam(s, math.Sqrt(norm))
	weights, means, second, gradient := numbers(w), numbers(mean), numbers(square), numbers(g)
	be.forEachBlock(len(weights), blockNumbers, func(_ *scratch, _, lo, hi int) {
		a.step(weights[lo:hi], means[lo:hi], second[lo:hi], gradient[lo:hi])
		clear(gradient[lo:hi])
	})
}

// adam is a Step worked out for float32.
type adam struct {
	clip, decay, rate, root, epsilon float32
	beta1, beta2                     float32
}

func newAdam(s *compute.Step, norm float64) adam {
	t := float64(s.Number)
	return adam{
		clip:    float32(min(1, s.Clip/(norm+1e-6))),
		decay:   float32(1 - s.Rate*s.Decay),
		rate:    float32(s.Rate / (1 - math.Pow(s.Beta1, t))),
		root:    float32(1 / math.Sqrt(1-math.Pow(s.Beta2, t))),
		epsilon: float32(s.Epsilon),
		beta1:   float32(1 - s.Beta1), beta2: float32(1 - s.Beta2),
	}
}

func (a *adam) step(w, mean, square, g []float32) {
	mean, square, g = mean[:len(w)], square[:len(w)], g[:len(w)]
	for i, old := range w {
		x := g[i] * a.clip
		m := mean[i] + a.beta1*(x-mean[i])
		v := square[i] + a.beta2*(x*x-square[i])
		mean[i], square[i] = m, v
		w[i] = old*a.decay - a.rate*m/(float32(math.Sqrt(float64(v)))*a.root+a.epsilon)
	}
}
