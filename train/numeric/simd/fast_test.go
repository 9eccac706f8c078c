package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFastGELU(t *testing.T) {
	x := inputs()
	got := make([]float32, len(x))
	FastGELU(got, x)
	for i, v := range x {
		plain := fastGELUOf(v)
		if got[i] != plain && (plain == plain || got[i] == got[i]) {
			t.Fatalf("FastGELU(%v) is %v, one by one %v", v, got[i], plain)
		}
		want := float64(v) * 0.5 * math.Erfc(-float64(v)/math.Sqrt2)
		switch {
		case v != v || v == -inf: // −∞·0
			if plain == plain {
				t.Fatalf("FastGELU(%v) is %v, want NaN", v, plain)
			}
		case v == inf:
			if plain != inf {
				t.Fatalf("FastGELU(+Inf) is %v", plain)
			}
		case math.Abs(float64(plain)-want) > 2e-4:
			t.Fatalf("FastGELU(%v) is %v, want %v", v, plain, want)
		}
	}
}

func TestAddNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{1, 3, 8, 13, 32, 384, 390} {
		numbers := func() []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(3*r.NormFloat64() + 1)
			}
			return x
		}
		x, y, gain, bias := numbers(), numbers(), numbers(), numbers()
		got, plain := make([]float32, n), make([]float32, n)
		AddNorm(got, x, y, gain, bias, 1e-12)
		addNorm(plain, x, y, gain, bias, 1e-12)
		if !slices.Equal(got, plain) {
			t.Fatalf("%d numbers: other bits than one by one", n)
		}
		var mean, variance float64
		for i := range x {
			mean += (float64(x[i]) + float64(y[i])) / float64(n)
		}
		for i := range x {
			d := float64(x[i]) + float64(y[i]) - mean
			variance += d * d / float64(n)
		}
		for i := range x {
			want := (float64(x[i])+float64(y[i])-mean)/math.Sqrt(variance+1e-12)*float64(gain[i]) + float64(bias[i])
			if n > 1 && math.Abs(float64(got[i])-want) > 3e-5 {
				t.Fatalf("%d numbers: number %d is %v, want %v", n, i, got[i], want)
			}
		}
		AddNorm(x, x, y, gain, bias, 1e-12)
		if !slices.Equal(x, got) {
			t.Fatalf("%d numbers: other bits in place", n)
		}
	}
}

func BenchmarkFastGELU(b *testing.B) { bench(b, func(dst, x []float32) { FastGELU(dst, x) }) }
func BenchmarkAddNorm(b *testing.B) {
	bench(b, func(dst, x []float32) { AddNorm(dst, x, x, x, x, 1e-12) })
}
