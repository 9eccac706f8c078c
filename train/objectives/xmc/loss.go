package xmc

import (
	"math"

	"giantstream/train/numeric"
)

// price replaces the scores of an instance's candidates by the gradient of
// its loss with respect to them, and returns the loss. q holds the share of
// the instance's labels in each candidate.
func (o *Options) price(scores, q []float32) float64 {
	if o.Loss == Softmax {
		var mean float64 // of the scores, by shares
		for i, s := range scores {
			mean += float64(q[i]) * float64(s)
		}
		logSum := numeric.Softmax(scores)
		for i := range scores {
			scores[i] -= q[i]
		}
		return logSum - mean
	}
	positives := 0
	for _, share := range q {
		if share > 0 {
			positives++
		}
	}
	binary := squaredHinge
	if o.Loss == CrossEntropy {
		binary = logistic
	}
	var sum float64
	mean := 1 / float64(len(scores))
	for i, s := range scores {
		y, w := -1.0, mean
		if q[i] > 0 {
			y = 1
			if o.CountWeights {
				w *= float64(q[i]) * float64(positives)
			}
		}
		loss, gradient := binary(y * float64(s))
		sum += w * loss
		scores[i] = float32(w * y * gradient)
	}
	return sum
}

// squaredHinge returns max(0, 1−m)² and its derivative.
func squaredHinge(m float64) (loss, derivative float64) {
	if m >= 1 {
		return 0, 0
	}
	return (1 - m) * (1 - m), -2 * (1 - m)
}

// logistic returns ln(1 + e⁻ᵐ) and its derivative.
func logistic(m float64) (loss, derivative float64) {
	e := math.Exp(-math.Abs(m)) // never overflows
	loss = math.Log1p(e)
	if m < 0 {
		return loss - m, -1 / (1 + e)
	}
	return loss, -e / (1 + e)
}
