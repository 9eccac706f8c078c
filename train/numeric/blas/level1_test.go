package blas

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDotAndAxpy(t *testing.T) {
	every(t, func(t *testing.T, im Implementation) {
		r := rand.New(rand.NewPCG(7, 8))
		for n := range 140 {
			x, y := random(r, n+3), random(r, n+3)
			var want, bulk float64
			for i := range n {
				want += float64(x[i]) * float64(y[i])
				bulk += math.Abs(float64(x[i]) * float64(y[i]))
			}
			got := im.Sdot(n, x, 1, y, 1)
			if math.Abs(float64(got)-want) > 1e-6*bulk {
				t.Errorf("dot of %d numbers is %v, want %v", n, got, want)
			}
			for shift := 1; shift < 3; shift++ {
				if moved := im.Sdot(n, slices.Concat(make([]float32, shift), x)[shift:], 1, y, 1); moved != got {
					t.Errorf("dot of %d numbers depends on their address: %v and %v", n, moved, got)
				}
			}
			sum := slices.Clone(y)
			im.Saxpy(n, 0.3, x, 1, sum, 1)
			for i := range sum {
				want := float64(y[i])
				if i < n {
					want += float64(float32(0.3)) * float64(x[i])
				}
				if sum[i] != float32(want) {
					t.Errorf("axpy of %d numbers: number %d is %v, want %v", n, i, sum[i], want)
				}
			}
		}
	})
}
