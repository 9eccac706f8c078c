package numeric

import (
	"math"
)

const (
	beta1 = 0.9
	beta2 = 0.999
)

// AdamRate is Adam's step size at step t (from 1) for a learning rate: the rate
// with both bias corrections (Kingma and Ba 2015, end of section 2).
func AdamRate(rate float64, t int64) float32 {
	return float32(rate * math.Sqrt(1-math.Pow(beta2, float64(t))) / (1 - math.Pow(beta1, float64(t))))
}

// Adam takes one step on w along the gradient g, with rate from AdamRate. mean and
// square are the running moments and begin at zero.
func Adam(w, mean, square, g []float32, rate float32) {
	for i, x := range g {
		mean[i] += (1 - beta1) * (x - mean[i])
		square[i] += (1 - beta2) * (x*x - square[i])
		w[i] -= rate * mean[i] / (float32(math.Sqrt(float64(square[i]))) + 1e-8)
	}
}

// WarmupFraction is the share of the highest learning rate for step s (from 0) of
// steps: linearly up over the warm-up, a share of the steps, and linearly down to
// zero after it.
func WarmupFraction(s, steps int64, warmup float64) float64 {
	warm := int64(warmup * float64(steps))
	if s < warm {
		return float64(s+1) / float64(warm+1)
	}
	return float64(steps-s) / float64(steps-warm)
}
