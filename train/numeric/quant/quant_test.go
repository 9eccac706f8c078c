package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var nan, inf = float32(math.NaN()), float32(math.Inf(1))

// every runs a test on each set of kernels that this processor has.
func every(t *testing.T, test func(*testing.T, *kernels)) {
	for _, k := range supported() {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// problem is a product whose input has one column far larger than the others.
type problem struct {
	n, in, out int
	x, w, bias []float32
}

func newProblem(r *rand.Rand, n, in, out int) *problem {
	p := &problem{n: n, in: in, out: out, x: random(r, n*in), w: random(r, in*out), bias: random(r, out)}
	loud := r.IntN(in)
	for i := range n {
		p.x[i*in+loud] *= 30
	}
	return p
}

func (p *problem) matrix(t testing.TB, k *kernels, sample []float32, fine bool) *Matrix {
	t.Helper()
	m, err := newMatrix(k, p.w, p.in, p.out, sample, fine)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run multiplies into memory that holds NaN before, with room behind it that must stay so.
func (p *problem) run(t testing.TB, m *Matrix) []float32 {
	t.Helper()
	const behind = 40
	y := slices.Repeat([]float32{nan}, p.n*p.out+behind)
	m.Multiply(y, p.x, p.n, p.bias)
	for _, v := range y[p.n*p.out:] {
		if v == v {
			t.Fatalf("%d × %d × %d: wrote behind y", p.n, p.in, p.out)
		}
	}
	return y[:p.n*p.out]
}

// reference computes what doc.go says, in integers of 64 bits, from the weights alone.
func (p *problem) reference(sample []float32, fine bool) []float32 {
	y := make([]float32, p.n*p.out)
	var levels []float32
	means := make([]float64, p.in)
	if len(sample) > 0 {
		levels = make([]float32, p.in)
		for i, v := range sample {
			levels[i%p.in] = max(levels[i%p.in], abs(v))
			means[i%p.in] += float64(v)
		}
		for i := range means {
			means[i] /= float64(len(sample) / p.in)
		}
	}
	most := largest(p.w, p.in, p.out)
	f := factorsOf(levels, most)
	loud, quiet := divide(levels, p.in, fine)
	isLoud := make([]bool, p.in)
	for _, i := range loud {
		isLoud[i] = true
	}
	w, scales := make([]int64, p.in*p.out), make([]float32, p.out)
	b, limit := 5, int64(0)
	for limit < 1020<<b && b > 1 {
		b--
		limit = 32767
		clear(scales)
		for j := range p.out {
			for i := range p.in {
				most := float32(127)
				if isLoud[i] {
					most = float32(int(32767) >> b)
				}
				scales[j] = max(scales[j], abs(p.w[i*p.out+j]/f[i])/most)
			}
			sum := int64(1)
			for i := range p.in {
				at := i*p.out + j
				if w[at] = 0; scales[j] == 0 {
					continue
				}
				steps := float64(p.w[at]/f[i]) / float64(scales[j])
				if isLoud[i] {
					w[at] = int64(math.RoundToEven(steps * float64(int(1)<<b)))
					sum += max(w[at], -w[at])
				} else {
					w[at] = int64(math.RoundToEven(steps))
				}
			}
			limit = min(limit, (math.MaxInt32-256)/sum)
		}
	}
	unit := float32(int(1)<<b) / float32(limit)
	drift := make([]float64, p.out)
	for at, i := range append(slices.Clone(loud), quiet...) {
		bits := 0
		if at < len(loud) {
			bits = b
		}
		for j := range drift {
			steps := float64(w[i*p.out+j]) * float64(scales[j]) / float64(int(1)<<bits)
			drift[j] += means[i] * (float64(p.w[i*p.out+j]) - steps*float64(f[i]))
		}
	}
	for r := range p.n {
		var low, high, top float32
		row := make([]float32, p.in)
		for i, v := range p.x[r*p.in:][:p.in] {
			row[i] = v * f[i]
			if isLoud[i] {
				top = max(top, abs(row[i]))
			} else {
				low, high = min(low, row[i]), max(high, row[i])
			}
		}
		s := max((high-low)/255, float32(top*unit))
		inverse := 1 / s
		if s < least {
			s, inverse = 0, 0
		}
		zero := int64(math.RoundToEven(float64(-low * inverse)))
		for j := range p.out {
			var ofLoud, ofQuiet int64
			for i, x := range row {
				if isLoud[i] {
					ofLoud += int64(math.RoundToEven(float64(x*float32(inverse*float32(int(1)<<b))))) * w[i*p.out+j]
				} else {
					q := min(max(int64(math.RoundToEven(float64(x*inverse)))+zero, 0), 255) - zero
					ofQuiet += q * w[i*p.out+j]
				}
			}
			if ofLoud > math.MaxInt32-256 || ofLoud < -math.MaxInt32+256 {
				panic("a sum of the loud columns does not fit into 32 bits")
			}
			sum := ofQuiet + int64(math.Floor(float64(ofLoud)/float64(int(1)<<(2*b))+0.5))
			y[r*p.out+j] = float32(float32(float32(sum)*s)*scales[j]) + (p.bias[j] + float32(drift[j]))
		}
	}
	return y
}

func sizes(r *rand.Rand) (n, in, out int) {
	pick := func(all ...int) int { return all[r.IntN(len(all))] }
	return pick(1, 2, 5, 6, 7, 13, 14, 15, 29, 60), pick(1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 32, 64, 100, 129),
		pick(1, 3, 15, 16, 17, 31, 32, 33, 65, 96)
}

// Every set of kernels gives the bits of the reference.
func TestSameBits(t *testing.T) {
	every(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(1, 2))
		problems := []*problem{
			newProblem(r, 300, 70, 40), newProblem(r, 20, 1024, 40), newProblem(r, 9, 4100, 33), newProblem(r, 14, 384, 96),
		}
		for range 300 {
			problems = append(problems, newProblem(r, 0, 1, 1))
			p := problems[len(problems)-1]
			n, in, out := sizes(r)
			*p = *newProblem(r, n, in, out)
		}
		for _, p := range problems {
			for i, sample := range [][]float32{nil, p.x, nil, p.x} {
				fine := i >= 2
				got, want := p.run(t, p.matrix(t, k, sample, fine)), p.reference(sample, fine)
				for i, v := range want {
					if got[i] != v {
						t.Fatalf("%d × %d × %d, fine %t: number %d is %v, want %v", p.n, p.in, p.out, fine, i, got[i], v)
					}
				}
			}
		}
	})
}

// The error of a product is that of the roundings, and levels make it smaller where a column is loud.
func TestError(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := newProblem(r, 50, 384, 64)
	exact, square := make([]float64, p.n*p.out), 0.0
	for i := range exact {
		exact[i] = float64(p.bias[i%p.out])
		for k := range p.in {
			exact[i] += float64(p.x[i/p.out*p.in+k]) * float64(p.w[k*p.out+i%p.out])
		}
		square += exact[i] * exact[i]
	}
	off := func(sample []float32, fine bool) float64 {
		sum := 0.0
		for i, v := range p.run(t, p.matrix(t, fastest(), sample, fine)) {
			sum += (float64(v) - exact[i]) * (float64(v) - exact[i])
		}
		return math.Sqrt(sum / square)
	}
	plain, levelled, fine := off(nil, false), off(p.x, false), off(p.x, true)
	t.Logf("relative error %.4f without levels, %.4f with, %.5f fine", plain, levelled, fine)
	if plain > 0.15 || levelled > 0.01 || levelled > plain/2 || fine > levelled*0.9 {
		t.Errorf("relative error %.4f without levels, %.4f with, %.5f fine", plain, levelled, fine)
	}
}

// A row has the same bits alone and among others.
func TestRowsAreIndependent(t *testing.T) {
	every(t, func(t *testing.T, k *kernels) {
		r := rand.New(rand.NewPCG(5, 6))
		p := newProblem(r, 500, 48, 50)
		m := p.matrix(t, k, p.x, true)
		whole := p.run(t, m)
		for range 30 {
			i := r.IntN(p.n)
			part := *p
			part.n = 1 + r.IntN(min(40, p.n-i))
			part.x = p.x[i*p.in:][:part.n*p.in]
			if !slices.Equal(part.run(t, m), whole[i*p.out:][:part.n*p.out]) {
				t.Fatalf("%d rows from row %d on differ from the same among %d", part.n, i, p.n)
			}
		}
	})
}

func TestExtremeRows(t *testing.T) {
	every(t, func(t *testing.T, k *kernels) {
		for _, in := range []int{3, 16, 37} {
			for _, at := range []int{0, in - 1} {
				for name, c := range map[string]struct {
					value float32
					nan   bool
				}{
					"NaN": {nan, true}, "-NaN": {-nan, true}, "Inf": {inf, true}, "-Inf": {-inf, true},
					"large": {1e35, false}, "tiny": {1e-40, false}, "zero": {0, false},
				} {
					p := &problem{n: 2, in: in, out: 5, x: make([]float32, 2*in), w: slices.Repeat([]float32{1}, in*5),
						bias: []float32{1, 2, 3, 4, 5}}
					p.x[at] = c.value
					p.x[in] = 1
					y := p.run(t, p.matrix(t, k, nil, at > 0))
					if y[0] == y[0] == c.nan || (!c.nan && abs(y[0]-(c.value+1)) > 1e-5*c.value) {
						t.Errorf("%d numbers, %s among them: %v", in, name, y[0])
					}
					if abs(y[5]-2) > 1e-6 {
						t.Errorf("%d numbers, %s in the row before: %v, want 2", in, name, y[5])
					}
				}
			}
		}
		p := &problem{n: 1, in: 2, out: 1, x: []float32{3e38, -3e38}, w: []float32{1, 1}, bias: []float32{0}}
		if y := p.run(t, p.matrix(t, k, nil, true)); y[0] == y[0] {
			t.Errorf("a row whose range overflows gives %v, want NaN", y[0])
		}
	})
}

// The greatest sum that is possible fits.
func TestLargestSums(t *testing.T) {
	every(t, func(t *testing.T, k *kernels) {
		for _, sign := range []float32{1, -1} {
			p := &problem{n: 1, in: maxIn, out: 1, x: slices.Repeat([]float32{sign}, maxIn),
				w: slices.Repeat([]float32{1}, maxIn), bias: []float32{0}}
			if y := p.run(t, p.matrix(t, k, nil, true)); abs(y[0]-sign*maxIn) > 1e-5*maxIn {
				t.Errorf("%d times %v gives %v", maxIn, sign, y[0])
			}
		}
	})
}

func TestMatrixIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		in, out, weights int
		sample           []float32
		first            float32
	}{
		"no rows": {0, 1, 0, nil, 0}, "no columns": {1, 0, 0, nil, 0}, "too few": {2, 2, 3, nil, 0},
		"half a row": {2, 2, 4, []float32{1}, 0}, "NaN": {2, 2, 4, nil, nan}, "infinite": {2, 2, 4, nil, -inf},
		"too many rows": {maxIn + 1, 1, maxIn + 1, nil, 0},
	} {
		w := make([]float32, c.weights)
		if len(w) > 0 {
			w[0] = c.first
		}
		if _, err := New(w, c.in, c.out, c.sample, false); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	// A sample that means nothing leaves the factors alone, and the products finite.
	weights, sample := []float32{1, 2, 3, 4}, []float32{0, inf, nan, 1}
	m, err := New(weights, 4, 1, sample, false)
	if err != nil {
		t.Fatal(err)
	}
	y := []float32{0}
	if m.Multiply(y, []float32{1, 1, 1, 1}, 1, y); abs(y[0]-10) > 0.1 {
		t.Errorf("the sum of 1 to 4 is %v", y[0])
	}
	for i, f := range factorsOf(sample, weights)[:3] {
		if f != 1 {
			t.Errorf("factor %d is %v, want 1", i, f)
		}
	}
}

func FuzzMultiply(f *testing.F) {
	f.Add(uint64(1), uint16(14), uint16(384), uint16(32))
	f.Add(uint64(2), uint16(225), uint16(1), uint16(33))
	f.Fuzz(func(t *testing.T, seed uint64, n, in, out uint16) {
		p := newProblem(rand.New(rand.NewPCG(seed, 0)), int(n%230)+1, int(in%600)+1, int(out%100)+1)
		for _, fine := range []bool{false, true} {
			want := p.reference(p.x, fine)
			for _, k := range supported() {
				if !slices.Equal(p.run(t, p.matrix(t, k, p.x, fine)), want) {
					t.Errorf("%s: %d × %d × %d, fine %t, differs from the reference", k.name, p.n, p.in, p.out, fine)
				}
			}
		}
	})
}

func BenchmarkMultiply(b *testing.B) {
	for _, k := range supported() {
		for _, s := range [][3]int{{224, 384, 1152}, {224, 384, 384}, {224, 384, 1536}, {224, 1536, 384}} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d", k.name, s[0], s[1], s[2]), func(b *testing.B) {
				p := newProblem(rand.New(rand.NewPCG(1, 1)), s[0], s[1], s[2])
				m, y := p.matrix(b, k, nil, s[1] > s[2]), make([]float32, s[0]*s[2])
				for b.Loop() {
					m.Multiply(y, p.x, p.n, p.bias)
				}
				b.ReportMetric(float64(s[0]*s[1]*s[2])*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}
