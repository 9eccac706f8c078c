// Package optim holds the optimiser that more than one trainer uses.
package optim

import "math"

const (
	beta1 = 0.9
	beta2 = 0.999
)

// Rate is Adam's step size at step t (from 1) for a learning rate: the rate
// with both bias corrections (Kingma and Ba 2015, end of section 2).
func Rate(rate float64, t int64) float32 {
	return float32(rate * math.Sqrt(1-math.Pow(beta2, float64(t))) / (1 - math.Pow(beta1, float64(t))))
}

// Adam takes one step on w along the gradient g, with rate from Rate. mean and
// square are the running moments and begin at zero.
func Adam(w, mean, square, g []float32, rate float32) {
	for i, x := range g {
		mean[i] += (1 - beta1) * (x - mean[i])
		square[i] += (1 - beta2) * (x*x - square[i])
		w[i] -= rate * mean[i] / (float32(math.Sqrt(float64(square[i]))) + 1e-8)
	}
}
