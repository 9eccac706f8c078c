package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

var nan, inf = float32(math.NaN()), float32(math.Inf(1))

// inputs walks the whole range of float32 in both signs, and densely what a
// model sees.
func inputs() []float32 {
	x := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, nan, math.MaxFloat32, -math.MaxFloat32,
		math.SmallestNonzeroFloat32}
	for bits := uint32(0); bits < 0x7f800000; bits += 9973 {
		v := math.Float32frombits(bits)
		x = append(x, v, -v)
	}
	for v := float32(-14); v < 14; v += 1.0 / 4096 {
		x = append(x, v)
	}
	return x
}

func TestGELU(t *testing.T) {
	x := inputs()
	got, ones, slopes := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	for i := range ones {
		ones[i] = 1
	}
	GELU(got, x)
	GELUBackward(slopes, ones, x)
	for i, v := range x {
		for name, y := range map[string]float32{"GELU": got[i], "GELU one by one": geluOf(v)} {
			checkGELU(t, name, v, y)
		}
		for name, y := range map[string]float32{"slope": slopes[i], "slope one by one": geluSlopeOf(v)} {
			checkSlope(t, name, v, y)
		}
		if t.Failed() {
			return
		}
	}
}

func checkGELU(t *testing.T, name string, v, got float32) {
	t.Helper()
	x := float64(v)
	want := x * 0.5 * math.Erfc(-x/math.Sqrt2)
	switch {
	case v != v:
		if got == got {
			t.Errorf("%s(NaN) is %v", name, got)
		}
	case v <= -reach:
		if got != 0 {
			t.Errorf("%s(%v) is %v, want 0", name, v, got)
		}
	case v == inf:
		if got != inf {
			t.Errorf("%s(+Inf) is %v", name, got)
		}
	default:
		if math.Abs(float64(got)-want) > 1e-6*math.Abs(want)+1e-43 {
			t.Errorf("%s(%v) is %v, want %v", name, v, got, want)
		}
	}
}

func checkSlope(t *testing.T, name string, v, got float32) {
	t.Helper()
	x := min(max(float64(v), -40), 40)
	want := 0.5*math.Erfc(-x/math.Sqrt2) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	switch {
	case v != v:
		if got == got {
			t.Errorf("%s(NaN) is %v", name, got)
		}
	case math.Abs(float64(got)-want) > 3e-7:
		t.Errorf("%s(%v) is %v, want %v", name, v, got, want)
	}
}

func TestPlaceDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 100)
	for i := range x {
		x[i] = float32(3 * r.NormFloat64())
	}
	whole, slopes := make([]float32, 100), make([]float32, 100)
	GELU(whole, x)
	GELUBackward(slopes, x, x)
	for n := range 30 {
		part, slope := make([]float32, n), make([]float32, n)
		GELU(part, x[n:2*n])
		GELUBackward(slope, x[n:2*n], x[n:2*n])
		for i := range n {
			if part[i] != whole[n+i] || slope[i] != slopes[n+i] {
				t.Fatalf("element %d of %d differs from the same among 100", i, n)
			}
		}
	}
}

func TestSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 70 {
		for _, spread := range []float64{0.1, 5, 60} {
			x := make([]float32, n)
			top := -inf
			for i := range x {
				x[i] = float32(spread * r.NormFloat64())
				top = max(top, x[i])
			}
			want, sum := make([]float64, n), 0.0
			for i, v := range x {
				want[i] = math.Exp(float64(v - top))
				sum += want[i]
			}
			plain := append([]float32(nil), x...)
			if n > 0 {
				softmax(plain)
			}
			Softmax(x)
			for i := range x {
				w := want[i] / sum
				if math.Abs(float64(x[i])-w) > 1e-6*w+1e-37 || math.Abs(float64(plain[i])-w) > 1e-6*w+1e-37 {
					t.Fatalf("%d of %d numbers is %v and, one by one, %v; want %v", i, n, x[i], plain[i], w)
				}
			}
		}
	}
}

func TestSoftmaxOfExtremes(t *testing.T) {
	for _, n := range []int{3, 8, 11} {
		x := make([]float32, n)
		x[0], x[1], x[2] = -inf, math.MaxFloat32, -math.MaxFloat32
		Softmax(x)
		if x[0] != 0 || x[1] != 1 || x[2] != 0 {
			t.Errorf("of %d numbers with extremes: %v", n, x)
		}
		x[0], x[n-1] = 0, nan
		Softmax(x)
		for i, v := range x {
			if v == v {
				t.Errorf("of %d numbers with NaN: number %d is %v", n, i, v)
			}
		}
	}
}

func TestExp(t *testing.T) {
	for v := float32(-87); v <= 0; v += 1.0 / 4096 {
		x := make([]float32, 9)
		x[1] = v
		Softmax(x) // 1/(8 + eᵛ) and eᵛ/(8 + eᵛ)
		got, want := float64(x[1])/float64(x[0]), math.Exp(float64(v))
		if math.Abs(got-want) > 4e-7*want && want > 1e-36 {
			t.Fatalf("exp(%v) is %v, want %v", v, got, want)
		}
		if got := float64(exp(v, 0)); math.Abs(got-want) > 2e-7*want {
			t.Fatalf("exp(%v) one by one is %v, want %v", v, got, want)
		}
	}
}

func BenchmarkGELU(b *testing.B) { bench(b, func(dst, x []float32) { GELU(dst, x) }) }
func BenchmarkGELUBackward(b *testing.B) {
	bench(b, func(dst, x []float32) { GELUBackward(dst, x, x) })
}
func BenchmarkSoftmax(b *testing.B) {
	bench(b, func(dst, x []float32) {
		copy(dst, x)
		for i := 0; i < len(dst); i += 128 {
			Softmax(dst[i : i+128])
		}
	})
}

func bench(b *testing.B, f func(dst, x []float32)) {
	r := rand.New(rand.NewPCG(5, 6))
	x, dst := make([]float32, 4096), make([]float32, 4096)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for b.Loop() {
		f(dst, x)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/4096, "ns/number")
}
