package numeric_test

import (
	"errors"
	"math"
	"slices"
	"syscall"
	"testing"

	gonumblas "gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"

	"giantstream/train/numeric"
	"giantstream/train/numeric/blas"
)

// Rows that were turned, and shaken a little, are turned back.
func TestProcrustesFindsTheRotation(t *testing.T) {
	for _, tt := range []struct{ n, dim int }{{1000, 24}, {257, 7}, {40, 24}, {1, 1}} {
		rows := cloud(tt.n, tt.dim)
		axes, err := numeric.PrincipalAxes(cloud(500, tt.dim), tt.dim) // some orthogonal matrix
		if err != nil {
			t.Fatal(err)
		}
		turned := slices.Clone(rows)
		numeric.Rotate(turned, axes, tt.dim)
		r := numeric.NewRand(7)
		for i := range turned {
			turned[i] += 1e-4 * float32(r.Float64()-0.5)
		}
		rotation, err := numeric.Procrustes(turned, rows, tt.dim)
		if err != nil {
			t.Fatal(err)
		}
		numeric.Rotate(turned, rotation, tt.dim)
		for i, v := range turned {
			if math.Abs(float64(v-rows[i])) > 1e-3 {
				t.Fatalf("%d×%d: number %d is %g, want %g", tt.n, tt.dim, i, v, rows[i])
			}
		}
		for i := range tt.dim {
			for j := range tt.dim {
				var dot float64
				for k := range tt.dim {
					dot += float64(rotation[k*tt.dim+i]) * float64(rotation[k*tt.dim+j])
				}
				if want := map[bool]float64{true: 1}[i == j]; math.Abs(dot-want) > 1e-5 {
					t.Fatalf("%d×%d: columns %d and %d have the product %g, want %g", tt.n, tt.dim, i, j, dot, want)
				}
			}
		}
	}
}

// Rows in which nothing is known of a direction still give an orthogonal matrix, and always the same.
func TestProcrustesOfRowsWithoutSomeDirections(t *testing.T) {
	for name, rows := range map[string][]float32{"zeros": make([]float32, 12), "one direction": {1, 0, 0, 0, 2, 0, 0, 0}} {
		a, err := numeric.Procrustes(rows, rows, 4)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := numeric.Procrustes(rows, rows, 4)
		if err != nil || !slices.Equal(a, b) {
			t.Errorf("%s: %v, then %v: %v", name, a, b, err)
		}
		turned := slices.Clone(a)
		for i := range 4 {
			var dot float64
			for k := range 4 {
				dot += float64(turned[k*4+i]) * float64(turned[k*4+i])
			}
			if math.Abs(dot-1) > 1e-5 {
				t.Errorf("%s: column %d has the square %g", name, i, dot)
			}
		}
	}
}

func TestProcrustesRefuses(t *testing.T) {
	for name, rows := range map[string][2][]float32{
		"rows of another length": {{1, 2, 3}, {1, 2, 3}}, "as many": {{1, 2}, {1, 2, 3, 4}},
		"a number that is not finite": {{1, float32(math.NaN())}, {1, 2}},
	} {
		if _, err := numeric.Procrustes(rows[0], rows[1], 2); !errors.Is(err, numeric.ErrNoRotation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkRotate turns vectors of 256 dimensions by a map, as a consumer would that has the map and not the encoder:
// with the kernels that programs register at their start, and with those of gonum that a program without has.
func BenchmarkRotate(b *testing.B) {
	defer blas32.Use(blas32.Implementation())
	const n, dim = 4096, 256
	rows, axes := make([]float32, n*dim), make([]float32, dim*dim)
	r := numeric.NewRand(1)
	for i := range rows {
		rows[i] = float32(r.Float64() - 0.5)
	}
	for i := range dim {
		axes[i*dim+i] = 1
	}
	for name, im := range map[string]gonumblas.Float32{"gonum": gonum.Implementation{}, "giantstream": blas.New()} {
		b.Run(name, func(b *testing.B) {
			blas32.Use(im)
			began := userTime(b)
			for b.Loop() {
				numeric.Rotate(rows, axes, dim)
			}
			b.ReportMetric((userTime(b)-began)/float64(b.N*n), "cpu-µs/vector")
		})
	}
}

// userTime is the processor time of this process in µs, which other load does not add to as it does to wall time.
func userTime(b *testing.B) float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return float64(use.Utime.Nano()) / 1e3
}
