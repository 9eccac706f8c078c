package computetest

import (
	"math"
	"slices"
	"testing"

	"giantstream/train/encoders/bert/compute"
)

func optimizer(t *testing.T, be compute.Backend) {
	const n = 70_000
	x := random(n, 1)
	squares := make([]float64, 2)
	for _, v := range x {
		squares[1] += float64(v) * float64(v)
	}
	norms := be.Upload([]float32{0.25, float32(math.NaN())})
	be.Squares(norms, 1, be.Upload(slices.Clone(x)))
	squares[0] = 0.25
	compare(t, "squares", read(t, be, norms, 2), squares)

	const m = 50
	norm := math.Sqrt(squares[0] + squares[1])
	for _, clip := range []float64{1, 1e6} {
		w, mean, square := widen(random(m, 2)), make([]float64, m), make([]float64, m)
		weights, means, second := be.Upload(random(m, 2)), be.Upload(make([]float32, m)), be.Upload(make([]float32, m))
		for step := int64(1); step <= 3; step++ {
			s := &compute.Step{
				Number: step, Rate: 0.01 * float64(step), Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8,
				Decay: 0.1, Clip: clip,
			}
			g := random(m, 10+uint64(step))
			gradient := be.Upload(slices.Clone(g))
			be.AdamW(weights, means, second, gradient, norms, s)
			for i, v := range g {
				d := float64(v) * min(1, clip/(norm+1e-6))
				mean[i] = 0.9*mean[i] + 0.1*d
				square[i] = 0.999*square[i] + 0.001*d*d
				w[i] *= 1 - s.Rate*s.Decay
				w[i] -= s.Rate / (1 - math.Pow(0.9, float64(step))) * mean[i] / (math.Sqrt(square[i]/(1-math.Pow(0.999,
					float64(step)))) + 1e-8)
			}
			compare(t, "weights", read(t, be, weights, m), w)
			if !slices.Equal(read(t, be, gradient, m), make([]float32, m)) {
				t.Error("the gradient was not set to 0")
			}
		}
	}

	weights, gradient := be.Upload(random(m, 2)), be.Upload(random(m, 3))
	mean, square := be.Upload(make([]float32, m)), be.Upload(make([]float32, m))
	be.AdamW(weights, mean, square, gradient, be.Upload([]float32{1, float32(math.Inf(1))}),
		&compute.Step{Number: 1, Rate: 1, Clip: 1})
	if !slices.Equal(read(t, be, weights, m), random(m, 2)) || !slices.Equal(read(t, be, gradient, m),
		make([]float32, m)) {
		t.Error("with an infinite norm, the weights must stay and the gradient go")
	}
}
