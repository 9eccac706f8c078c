package cpu

import (
	"math"
	"testing"

	gonumblas "gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"

	"giantstream/train/bert/compute/computetest"
	"giantstream/train/blas"
)

func TestBackend(t *testing.T) {
	defer blas32.Use(blas32.Implementation())
	for name, im := range map[string]gonumblas.Float32{"gonum": gonum.Implementation{}, "giantstream": blas.New()} {
		blas32.Use(im)
		t.Run(name, func(t *testing.T) { computetest.Run(t, New()) })
	}
}

func TestFunctions(t *testing.T) {
	g := newGELU()
	for i := -200_000; i <= 200_000; i++ {
		x := float32(i) / 20_000
		want := float64(x) * 0.5 * math.Erfc(-float64(x)/math.Sqrt2)
		if got := g.at(x); math.Abs(float64(got)-want) > 3e-7*max(0.1, math.Abs(float64(x))) {
			t.Fatalf("gelu(%v) is %v, want %v", x, got, want)
		}
		if x *= 8; x > 0 {
			continue
		}
		if want, got := math.Exp(float64(x)), float64(exp(x)); math.Abs(got-want) > 3e-7*want {
			t.Fatalf("exp(%v) is %v, want %v", x, got, want)
		}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	if v := g.at(nan); v == v {
		t.Errorf("gelu(NaN) is %v", v)
	}
	if g.at(inf) != inf || g.at(-inf) != 0 || exp(-inf) != 0 || exp(0) != 1 {
		t.Errorf("at infinity: %v %v %v %v", g.at(inf), g.at(-inf), exp(-inf), exp(0))
	}
	if v := exp(nan); v == v {
		t.Errorf("exp(NaN) is %v", v)
	}
}
