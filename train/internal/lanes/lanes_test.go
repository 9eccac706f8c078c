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
			out := random(r, n)
			Project(out, w, index, value)
			for k, v := range out {
				if math.Abs(float64(v)-want[k]) > 1e-5 {
					t.Fatalf("%d lanes, %d entries: lane %d is %v, want %v", n, entries, k, v, want[k])
				}
			}

			d, after := random(r, n), slices.Clone(w)
			Add(after, d, index, value)
			for at := range w {
				want := float64(w[at])
				if j := slices.Index(index, int32(at/n)); j >= 0 {
					want += float64(value[j]) * float64(d[at%n])
				}
				if math.Abs(float64(after[at])-want) > 1e-5 {
					t.Fatalf("%d lanes, %d entries: weight %d is %v, want %v", n, entries, at, after[at], want)
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
			most := Step(next, delta, margin, sign, beta, d, h)
			want := float32(0)
			for k, y := range sign {
				alpha := float64(y * beta[k])
				gradient := float64(y*margin[k]) + float64(d)*alpha - 1
				to := float64(y) * max(0, alpha-gradient/float64(h))
				if y == 0 {
					to = 0
				}
				if math.Abs(to-float64(next[k])) > 1e-5 || math.Abs(float64(next[k]-beta[k]-delta[k])) > 1e-6 {
					t.Fatalf("%d lanes: lane %d from %v to %v by %v, want %v", n, k, beta[k], next[k], delta[k], to)
				}
				want = max(want, delta[k], -delta[k])
			}
			if most != want {
				t.Fatalf("%d lanes: the largest of %v is %v", n, delta, most)
			}
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
