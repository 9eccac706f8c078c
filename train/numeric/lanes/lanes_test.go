package lanes

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// row draws distinct columns, in no order.
func row(r *rand.Rand, cols, entries int) (index []int32, value []float32) {
	for _, j := range r.Perm(cols)[:entries] {
		index = append(index, int32(j))
	}
	return index, random(r, entries)
}

func TestProjectAndAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const cols = 50
	for _, n := range []int{8, 16, 32, 64} {
		for entries := range 20 {
			w := random(r, cols*n)
			index, value := row(r, cols, entries)
			want := make([]float64, n)
			for j, c := range index {
				for k := range n {
					want[k] += float64(value[j]) * float64(w[int(c)*n+k])
				}
			}
			out, plain := random(r, n), random(r, n)
			Project(out, w, index, value)
			plainProject(plain, w, index, value)
			for k, want := range want {
				if math.Abs(float64(out[k])-want) > 1e-5 || math.Abs(float64(plain[k])-want) > 1e-5 {
					t.Fatalf("%d lanes, %d entries: lane %d is %v and, without vectors, %v; want %v", n, entries, k, out[k],
						plain[k], want)
				}
			}

			d, after, plain := random(r, n), slices.Clone(w), slices.Clone(w)
			Add(after, d, index, value)
			plainAdd(plain, d, index, value)
			for at := range w {
				want := float64(w[at])
				if j := slices.Index(index, int32(at/n)); j >= 0 {
					want += float64(value[j]) * float64(d[at%n])
				}
				if math.Abs(float64(after[at])-want) > 1e-5 || math.Abs(float64(plain[at])-want) > 1e-5 {
					t.Fatalf("%d lanes, %d entries: weight %d is %v and, without vectors, %v; want %v", n, entries, at,
						after[at], plain[at], want)
				}
			}
		}
	}
}

// A step goes to the minimum along its coordinate, and not beyond zero.
func TestStep(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{8, 16, 32, 64} {
		for range 50 {
			next, delta, margin, sign, beta := random(r, n), random(r, n), random(r, n), make([]float32, n), random(r, n)
			d, h := float32(0.5+r.Float64()), float32(2+r.Float64())
			for k := range sign {
				sign[k] = float32(r.IntN(3) - 1)
				beta[k] = sign[k] * max(0, beta[k])
			}
			for name, step := range map[string]func() float32{
				"vectors": func() float32 { return Step(next, delta, margin, sign, beta, d, h) },
				"plain":   func() float32 { return plainStep(next, delta, margin, sign, beta, d, 1/h) },
			} {
				most, want := step(), float32(0)
				for k, y := range sign {
					alpha := float64(y * beta[k])
					gradient := float64(y*margin[k]) + float64(d)*alpha - 1
					to := float64(y) * max(0, alpha-gradient/float64(h))
					if y == 0 {
						to = 0
					}
					if math.Abs(to-float64(next[k])) > 1e-5 || math.Abs(float64(next[k]-beta[k]-delta[k])) > 1e-6 {
						t.Fatalf("%s, %d lanes: lane %d from %v to %v by %v, want %v", name, n, k, beta[k], next[k], delta[k], to)
					}
					want = max(want, delta[k], -delta[k])
				}
				if most != want {
					t.Fatalf("%s, %d lanes: the largest of %v is %v", name, n, delta, most)
				}
			}
		}
	}
}

func TestAtLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{8, 16, 32, 64} {
		x := random(r, n)
		x[3], x[n-1] = 0.5, -0.5
		var want uint64
		for k, v := range x {
			if math.Abs(float64(v)) >= 0.5 {
				want |= 1 << k
			}
		}
		if got, plain := AtLeast(x, 0.5), plainAtLeast(x, 0.5); got != want || plain != want {
			t.Errorf("of %v: %b and, without vectors, %b; want %b", x, got, plain, want)
		}
	}
}

func TestWidth(t *testing.T) {
	for n := 1; n <= Most; n++ {
		w := Width(n)
		if w < n || w > 8 && w >= 2*n {
			t.Errorf("%d lanes for %d", w, n)
		}
		check(w)
	}
}

// BenchmarkRow is a visit of a row of 200 features, a tenth of the most
// frequent 500 and the rest anywhere in 20,000 columns.
func BenchmarkRow(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	const cols, rows = 20000, 64
	index, value := make([][]int32, rows), make([][]float32, rows)
	for k := range rows {
		index[k], value[k] = row(r, cols, 200)
		for j := range 100 {
			index[k][j] = int32(5*j + r.IntN(5))
		}
	}
	for _, n := range []int{8, 16, 32, 64} {
		w, out := random(r, cols*n), random(r, n)
		b.Run(map[int]string{8: "8", 16: "16", 32: "32", 64: "64"}[n], func(b *testing.B) {
			for b.Loop() {
				for k := range rows {
					Project(out, w, index[k], value[k])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
		})
	}
}
