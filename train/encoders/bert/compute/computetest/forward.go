package computetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"giantstream/train/encoders/bert/compute"
)

const epsilon = 1e-12

// normalized is layer normalization of rows, in place.
func normalized(x, gain, bias []float64) {
	w := len(gain)
	for ; len(x) > 0; x = x[w:] {
		var mean, variance float64
		for _, v := range x[:w] {
			mean += v / float64(w)
		}
		for _, v := range x[:w] {
			variance += (v - mean) * (v - mean) / float64(w)
		}
		for j, v := range x[:w] {
			x[j] = (v-mean)/math.Sqrt(variance+epsilon)*gain[j] + bias[j]
		}
	}
}

func embed(t *testing.T, be compute.Backend) {
	const w = 24
	words, positions, types := random(11*w, 1), random(70*w, 2), random(2*w, 3)
	gain, bias := random(w, 4), random(w, 5)
	gaps := batch()
	for r := range gaps.Rows() {
		gaps.Places = append(gaps.Places, int32(r*7%70))
	}
	for _, b := range []compute.Batch{batch(), gaps} {
		want := make([]float64, b.Rows()*w)
		for r, place := range placesOf(b) {
			for j := range int32(w) {
				want[r*w+int(j)] = float64(words[b.IDs[r]*w+j]) + float64(positions[place*w+j]) + float64(types[j])
			}
		}
		normalized(want, widen(gain), widen(bias))
		out := poisoned(be, len(want))
		be.Embed(out, b, &compute.Embedding{
			Words: be.Upload(words), Positions: be.Upload(positions), Types: be.Upload(types),
			Norm: compute.Norm{Width: w, Gain: be.Upload(gain), Bias: be.Upload(bias), Epsilon: epsilon},
		})
		compare(t, "embedding", read(t, be, out, len(want)), want)
	}
}

// placesOf returns the place of each token of b within its text.
func placesOf(b compute.Batch) []int32 {
	if b.Places != nil {
		return b.Places
	}
	var places []int32
	for i := range b.Texts() {
		for r := range b.Start[i+1] - b.Start[i] {
			places = append(places, r)
		}
	}
	return places
}

func linear(t *testing.T, be compute.Backend) {
	for _, s := range []struct{ rows, in, out int }{{1, 1, 1}, {3, 70, 5}, {130, 65, 129}} {
		for a, f := range activations {
			x, weight, bias := random(s.rows*s.in, 1), random(s.in*s.out, 2), random(s.out, 3)
			want, sizes := make([]float64, s.rows*s.out), make([]float64, s.rows*s.out)
			for r := range s.rows {
				for j := range s.out {
					sum := float64(bias[j])
					for k := range s.in {
						product := float64(x[r*s.in+k]) * float64(weight[k*s.out+j])
						sum += product
						sizes[r*s.out+j] += steepest * math.Abs(product)
					}
					want[r*s.out+j] = f(sum)
				}
			}
			l := &compute.Linear{In: s.in, Out: s.out, Weight: be.Upload(weight), Bias: be.Upload(bias)}
			out := poisoned(be, len(want)+9) // longer than needed
			be.Linear(out, be.Upload(x), s.rows, l, a)
			all := read(t, be, out, len(want))
			compareRounded(t, fmt.Sprintf("%v, activation %d", s, a), all, want, slackOf(be, sizes))

			last := poisoned(be, s.out)
			be.Linear(last, be.Upload(slices.Clone(x[(s.rows-1)*s.in:])), 1, l, a)
			if !slices.Equal(read(t, be, last, s.out), all[(s.rows-1)*s.out:]) {
				t.Errorf("%v: the last row has other bits alone", s)
			}
		}
	}
}

// steepest is the largest slope of an activation, GELU's.
const steepest = 1.13

// activations are the references.
var activations = map[compute.Activation]func(float64) float64{
	compute.Identity: func(x float64) float64 { return x },
	compute.GELU:     func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
	compute.Tanh:     math.Tanh,
}

func activate(t *testing.T, be compute.Backend) {
	const n = 3000
	x := random(n, 1)
	for i := range x {
		x[i] *= 8
	}
	for a, f := range activations {
		want := widen(x)
		for i, v := range want {
			want[i] = f(v)
		}
		out := poisoned(be, n)
		be.Activate(out, be.Upload(slices.Clone(x)), n, a)
		compare(t, fmt.Sprintf("activation %d", a), read(t, be, out, n), want)
		in := be.Upload(slices.Clone(x))
		be.Activate(in, in, n, a)
		compare(t, fmt.Sprintf("activation %d, in place", a), read(t, be, in, n), want)
	}
}

// attention is the reference of Attend, with drop-out where b has seeds.
func attention(in []float64, b compute.Batch, heads, w int32) []float64 {
	all := heads * w
	out := make([]float64, int32(b.Rows())*all)
	for i := range b.Texts() {
		from, n := b.Start[i], b.Start[i+1]-b.Start[i]
		kept := factors(b, i, int(heads*n*n))
		for q := range n {
			for h := range heads {
				query := in[(from+q)*3*all+h*w:][:w]
				sums := out[(from+q)*all+h*w:][:w]
				var sum float64
				for k := range n {
					var score float64
					for j, v := range in[(from+k)*3*all+all+h*w:][:w] {
						score += v * query[j]
					}
					e := math.Exp(score / math.Sqrt(float64(w)))
					sum += e
					for j, v := range in[(from+k)*3*all+2*all+h*w:][:w] {
						sums[j] += e * v * kept[(h*n+q)*n+k]
					}
				}
				for j := range sums {
					sums[j] /= sum
				}
			}
		}
	}
	return out
}

func attend(t *testing.T, be compute.Backend) {
	const heads, w = 3, 5 // an odd width: no row begins at a round address
	const all = heads * w
	for _, b := range []compute.Batch{batch(), seeded(batch())} {
		in := random(b.Rows()*3*all, 1)
		for i := range in {
			in[i] *= 5 // scores far apart
		}
		want := attention(widen(in), b, heads, w)
		out := poisoned(be, len(want))
		be.Attend(out, be.Upload(in), b, heads, w, dropout)
		got := read(t, be, out, len(want))
		compare(t, "attention", got, want)

		for i := range b.Texts() {
			from, to := b.Start[i], b.Start[i+1]
			alone := poisoned(be, int(to-from)*all)
			be.Attend(alone, be.Upload(slices.Clone(in[from*3*all:to*3*all])), text(b, i), heads, w, dropout)
			if !slices.Equal(read(t, be, alone, int(to-from)*all), got[from*all:to*all]) {
				t.Errorf("text %d has other bits alone", i)
			}
		}
	}
}

// text is the batch of text i of b alone.
func text(b compute.Batch, i int) compute.Batch {
	from, to := b.Start[i], b.Start[i+1]
	one := compute.Batch{IDs: b.IDs[from:to], Start: []int32{0, to - from}}
	if b.Seeds != nil {
		one.Seeds = b.Seeds[i : i+1]
	}
	return one
}

func drop(t *testing.T, be compute.Backend) {
	const w = 7
	for _, b := range []compute.Batch{batch(), seeded(batch())} {
		x := random(b.Rows()*w, 1)
		var want []float64
		for i := range b.Texts() {
			want = append(want, factors(b, i, int(b.Start[i+1]-b.Start[i])*w)...)
		}
		for i, v := range x {
			want[i] *= float64(v)
		}
		out := poisoned(be, len(x))
		be.Drop(out, be.Upload(slices.Clone(x)), b, w, dropout)
		got := read(t, be, out, len(x))
		compare(t, "dropped", got, want)
		in := be.Upload(slices.Clone(x))
		be.Drop(in, in, b, w, dropout)
		compare(t, "in place", read(t, be, in, len(x)), want)
		for i := range b.Texts() {
			from, to := int(b.Start[i])*w, int(b.Start[i+1])*w
			alone := poisoned(be, to-from)
			be.Drop(alone, be.Upload(slices.Clone(x[from:to])), text(b, i), w, dropout)
			if !slices.Equal(read(t, be, alone, to-from), got[from:to]) {
				t.Errorf("text %d loses other numbers alone", i)
			}
		}
		be.Drop(out, be.Upload(slices.Clone(x)), b, w, compute.Dropout{})
		if !slices.Equal(read(t, be, out, len(x)), x) {
			t.Error("a rate of 0 drops something")
		}
	}
}

func addNorm(t *testing.T, be compute.Backend) {
	const rows, w = 7, 33
	x, y, gain, bias := random(rows*w, 1), random(rows*w, 2), random(w, 3), random(w, 4)
	want := widen(x)
	for i, v := range y {
		want[i] += float64(v)
	}
	normalized(want, widen(gain), widen(bias))
	n := &compute.Norm{Width: w, Gain: be.Upload(gain), Bias: be.Upload(bias), Epsilon: epsilon}
	a, b, out := be.Upload(slices.Clone(x)), be.Upload(slices.Clone(y)), poisoned(be, rows*w)
	be.AddNorm(out, a, b, rows, n)
	compare(t, "normalized", read(t, be, out, rows*w), want)
	be.AddNorm(a, a, b, rows, n)
	compare(t, "in place of x", read(t, be, a, rows*w), want)
	a = be.Upload(slices.Clone(x))
	be.AddNorm(b, a, b, rows, n)
	compare(t, "in place of the residual", read(t, be, b, rows*w), want)
}

func pool(t *testing.T, be compute.Backend) {
	const w = 9
	b := batch()
	x := random(b.Rows()*w, 1)
	first, mean := make([]float64, b.Texts()*w), make([]float64, b.Texts()*w)
	for i := range b.Texts() {
		from, to := int(b.Start[i]), int(b.Start[i+1])
		for j := range w {
			first[i*w+j] = float64(x[from*w+j])
			for r := from; r < to; r++ {
				mean[i*w+j] += float64(x[r*w+j]) / float64(to-from)
			}
		}
	}
	out := poisoned(be, b.Texts()*w)
	be.Pool(out, be.Upload(x), b, w, compute.First)
	compare(t, "first", read(t, be, out, out.Len()), first)
	be.Pool(out, be.Upload(x), b, w, compute.Mean)
	compare(t, "mean", read(t, be, out, out.Len()), mean)
}
