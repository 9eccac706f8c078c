package computetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/numeric"
)

// short has texts of 1, 6 and 3 tokens; words and places repeat.
func short() compute.Batch {
	return compute.Batch{IDs: []int32{3, 1, 4, 1, 5, 1, 2, 5, 5, 3}, Start: []int32{0, 1, 7, 10}}
}

// differentiate returns the gradient, for each array of at, of Σ f(at…)·slope,
// by central differences.
func differentiate(f func(at ...[]float64) []float64, slope []float32, at ...[]float32) [][]float64 {
	wide := make([][]float64, len(at))
	for i, x := range at {
		wide[i] = widen(x)
	}
	loss := func() float64 {
		var sum float64
		for i, v := range f(wide...) {
			sum += v * float64(slope[i])
		}
		return sum
	}
	const h = 1e-4
	out := make([][]float64, len(at))
	for i, x := range wide {
		for j, v := range x {
			x[j] = v + h
			up := loss()
			x[j] = v - h
			out[i] = append(out[i], (up-loss())/(2*h))
			x[j] = v
		}
	}
	return out
}

// sums holds gradients that an operation adds to. They do not begin at zero.
type sums struct {
	backend compute.Backend
	before  [][]float32
	buffers []compute.Buffer
	slack   [][]float64 // of compareRounded, per buffer; may be shorter
}

func (s *sums) new(n int, seed uint64) compute.Buffer {
	x := random(n, seed)
	s.before = append(s.before, slices.Clone(x))
	s.buffers = append(s.buffers, s.backend.Upload(x))
	return s.buffers[len(s.buffers)-1]
}

// compare checks that want was added to the buffers.
func (s *sums) compare(t *testing.T, what string, want ...[]float64) {
	t.Helper()
	for i, w := range want {
		all := widen(s.before[i])
		for j, v := range w {
			all[j] += v
		}
		var slack []float64
		if i < len(s.slack) {
			slack = s.slack[i]
		}
		compareRounded(t, fmt.Sprintf("%s, sum %d", what, i), read(t, s.backend, s.buffers[i], len(all)), all, slack)
	}
}

func backward(t *testing.T, be compute.Backend) {
	for name, check := range map[string]func(t *testing.T, be compute.Backend, seed uint64){
		"Embed": embedBackward, "Linear": linearBackward, "Activate": activateBackward,
		"Attend": attendBackward, "AddNorm": addNormBackward, "Pool": poolBackward,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				check(t, be, numeric.Mix(100+seed))
			}
		})
	}
}

func embedBackward(t *testing.T, be compute.Backend, seed uint64) {
	for _, places := range [][]int32{nil, {2, 0, 1, 1, 3, 4, 5, 0, 5, 2}} {
		b := short()
		b.Places = places
		embedBackwardOf(t, be, b, seed)
	}
}

func embedBackwardOf(t *testing.T, be compute.Backend, b compute.Batch, seed uint64) {
	const w, vocabulary, places = 7, 6, 6
	words, positions, types := random(vocabulary*w, seed), random(places*w, seed+1), random(2*w, seed+2)
	gain, bias, slope := random(w, seed+3), random(w, seed+4), random(b.Rows()*w, seed+5)
	want := differentiate(func(at ...[]float64) []float64 {
		out := make([]float64, b.Rows()*w)
		for r, place := range placesOf(b) {
			for j := range int32(w) {
				out[r*w+int(j)] = at[0][b.IDs[r]*w+j] + at[1][place*w+j] + at[2][j]
			}
		}
		normalized(out, at[3], at[4])
		return out
	}, slope, words, positions, types, gain, bias)
	s := &sums{backend: be}
	g := &compute.Embedding{
		Words: s.new(len(words), seed+6), Positions: s.new(len(positions), seed+7), Types: s.new(len(types), seed+8),
		Norm: compute.Norm{Width: w, Gain: s.new(w, seed+9), Bias: s.new(w, seed+10), Epsilon: epsilon},
	}
	be.EmbedBackward(g, be.Upload(slices.Clone(slope)), b, &compute.Embedding{
		Words: be.Upload(words), Positions: be.Upload(positions), Types: be.Upload(types),
		Norm: compute.Norm{Width: w, Gain: be.Upload(gain), Bias: be.Upload(bias), Epsilon: epsilon},
	})
	s.compare(t, "embedding", want...)
	if got := read(t, be, g.Words, w); !slices.Equal(got, s.before[0][:w]) {
		t.Error("the gradient of a word that does not occur has changed")
	}
}

func linearBackward(t *testing.T, be compute.Backend, seed uint64) {
	for _, s := range []struct{ rows, in, out int }{{1, 1, 1}, {5, 7, 3}, {9, 4, 11}} {
		x, weight, bias := random(s.rows*s.in, seed), random(s.in*s.out, seed+1), random(s.out, seed+2)
		slope, old := random(s.rows*s.out, seed+3), random(s.rows*s.in, seed+4)
		want := differentiate(func(at ...[]float64) []float64 {
			out := make([]float64, s.rows*s.out)
			for r := range s.rows {
				for j := range s.out {
					out[r*s.out+j] = at[2][j]
					for k := range s.in {
						out[r*s.out+j] += at[0][r*s.in+k] * at[1][k*s.out+j]
					}
				}
			}
			return out
		}, slope, x, weight, bias)
		ofInput, ofWeight := make([]float64, len(x)), make([]float64, len(weight)) // sums of the products' sizes
		for r := range s.rows {
			for j := range s.out {
				d := math.Abs(float64(slope[r*s.out+j]))
				for k := range s.in {
					ofInput[r*s.in+k] += d * math.Abs(float64(weight[k*s.out+j]))
					ofWeight[k*s.out+j] += d * math.Abs(float64(x[r*s.in+k]))
				}
			}
		}
		ofInput, ofWeight = slackOf(be, ofInput), slackOf(be, ofWeight)
		l := &compute.Linear{In: s.in, Out: s.out, Weight: be.Upload(weight), Bias: be.Upload(bias)}
		dy := be.Upload(slope)
		dx := poisoned(be, len(x))
		be.LinearBackward(dx, dy, s.rows, l, false)
		compareRounded(t, fmt.Sprintf("%v, input", s), read(t, be, dx, len(x)), want[0], ofInput)
		dx = be.Upload(slices.Clone(old))
		be.LinearBackward(dx, dy, s.rows, l, true)
		for i, v := range old {
			want[0][i] += float64(v)
		}
		compareRounded(t, fmt.Sprintf("%v, added to the input", s), read(t, be, dx, len(x)), want[0], ofInput)

		g := &sums{backend: be, slack: [][]float64{ofWeight}}
		be.LinearGradient(&compute.Linear{
			In: s.in, Out: s.out, Weight: g.new(len(weight), seed+5), Bias: g.new(s.out, seed+6),
		}, be.Upload(x), dy, s.rows)
		g.compare(t, fmt.Sprint(s), want[1:]...)
	}
}

func activateBackward(t *testing.T, be compute.Backend, seed uint64) {
	const n = 200
	x, slope := random(n, seed), random(n, seed+1)
	for i := range x {
		x[i] *= 8
	}
	for a, f := range activations {
		want := differentiate(func(at ...[]float64) []float64 {
			out := slices.Clone(at[0])
			for i, v := range out {
				out[i] = f(v)
			}
			return out
		}, slope, x)
		in, dy, dx := be.Upload(x), be.Upload(slices.Clone(slope)), poisoned(be, n)
		be.ActivateBackward(dx, dy, in, n, a)
		compare(t, fmt.Sprintf("activation %d", a), read(t, be, dx, n), want[0])
		be.ActivateBackward(dy, dy, in, n, a)
		compare(t, fmt.Sprintf("activation %d, in place", a), read(t, be, dy, n), want[0])
	}
}

func attendBackward(t *testing.T, be compute.Backend, seed uint64) {
	const heads, w = 2, 3
	const all = heads * w
	for _, b := range []compute.Batch{short(), seeded(short())} {
		in, slope := random(b.Rows()*3*all, seed), random(b.Rows()*all, seed+1)
		for i := range in {
			in[i] *= 2
		}
		want := differentiate(func(at ...[]float64) []float64 { return attention(at[0], b, heads, w) }, slope, in)
		out := poisoned(be, len(in))
		be.AttendBackward(out, be.Upload(slope), be.Upload(in), b, heads, w, dropout)
		compare(t, "attention", read(t, be, out, len(in)), want[0])
	}
}

func addNormBackward(t *testing.T, be compute.Backend, seed uint64) {
	const rows, w = 5, 9
	x, residual, gain, bias := random(rows*w, seed), random(rows*w, seed+1), random(w, seed+2), random(w, seed+3)
	gain[4] = 0 // so that the input cannot be computed from the output
	slope := random(rows*w, seed+4)
	want := differentiate(func(at ...[]float64) []float64 {
		out := slices.Clone(at[0])
		for i, v := range at[1] {
			out[i] += v
		}
		normalized(out, at[2], at[3])
		return out
	}, slope, x, residual, gain, bias)
	n := &compute.Norm{Width: w, Gain: be.Upload(gain), Bias: be.Upload(bias), Epsilon: epsilon}
	for _, place := range []string{"apart", "in place"} {
		dy := be.Upload(slices.Clone(slope))
		dx := dy
		if place == "apart" {
			dx = poisoned(be, rows*w)
		}
		s := &sums{backend: be}
		g := &compute.Norm{Width: w, Gain: s.new(w, seed+5), Bias: s.new(w, seed+6), Epsilon: epsilon}
		be.AddNormBackward(g, dx, dy, be.Upload(x), be.Upload(residual), rows, n)
		got := read(t, be, dx, rows*w)
		compare(t, place+", x", got, want[0])
		compare(t, place+", residual", got, want[1])
		s.compare(t, place, want[2:]...)
	}
}

func poolBackward(t *testing.T, be compute.Backend, seed uint64) {
	const w = 4
	b := short()
	x, slope := random(b.Rows()*w, seed), random(b.Texts()*w, seed+1)
	for _, p := range []compute.Pooling{compute.First, compute.Mean} {
		want := differentiate(func(at ...[]float64) []float64 {
			out := make([]float64, b.Texts()*w)
			for i := range b.Texts() {
				from, to := int(b.Start[i]), int(b.Start[i+1])
				for r := from; r < to; r++ {
					for j := range w {
						switch {
						case p == compute.Mean:
							out[i*w+j] += at[0][r*w+j] / float64(to-from)
						case r == from:
							out[i*w+j] = at[0][r*w+j]
						}
					}
				}
			}
			return out
		}, slope, x)
		dx := poisoned(be, len(x))
		be.PoolBackward(dx, be.Upload(slope), b, w, p)
		compare(t, fmt.Sprintf("pooling %d", p), read(t, be, dx, len(x)), want[0])
	}
}
