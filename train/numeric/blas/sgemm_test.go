package blas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"

	"giantstream/internal/race"
)

var _ blas.Float32 = Implementation{}

// every runs a test on each set of kernels that this processor has.
func every(t *testing.T, test func(*testing.T, Implementation)) {
	all := supported()
	if len(all) == 0 {
		t.Skip("no kernels for this processor: gonum computes")
	}
	for _, k := range all {
		t.Run(k.name, func(t *testing.T) { test(t, newImplementation(k)) })
	}
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func trans(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

// randomProduct has rows with gaps, filled with numbers that must not matter.
func randomProduct(r *rand.Rand, tA, tB bool, m, n, k int) product {
	p := product{transA: tA, transB: tB, m: m, n: n, k: k, alpha: 1, beta: 1}
	gap := func(cols int) int { return max(1, cols) + r.IntN(3) }
	if tA {
		p.lda = gap(m)
		p.a = random(r, max(k, 1)*p.lda)
	} else {
		p.lda = gap(k)
		p.a = random(r, m*p.lda)
	}
	if tB {
		p.ldb = gap(k)
		p.b = random(r, n*p.ldb)
	} else {
		p.ldb = gap(n)
		p.b = random(r, max(k, 1)*p.ldb)
	}
	p.ldc = gap(n)
	p.c = random(r, m*p.ldc)
	return p
}

func (p product) run(im blas.Float32Level3) []float32 {
	c := slices.Clone(p.c)
	im.Sgemm(trans(p.transA), trans(p.transB), p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, c, p.ldc)
	return c
}

func (p product) elementA(i, l int) float64 {
	if p.transA {
		return float64(p.a[l*p.lda+i])
	}
	return float64(p.a[i*p.lda+l])
}

func (p product) elementB(l, j int) float64 {
	if p.transB {
		return float64(p.b[j*p.ldb+l])
	}
	return float64(p.b[l*p.ldb+j])
}

// check compares C with sums in float64: the error of a sum of k products
// in float32 is well below k·2⁻²⁴ times the sum of their sizes.
func (p product) check(t *testing.T, got []float32) {
	t.Helper()
	for i := range p.m {
		for j := range p.ldc {
			old := p.c[i*p.ldc+j]
			if j >= p.n {
				if got[i*p.ldc+j] != old {
					t.Fatalf("%v: wrote behind row %d", p.shape(), i)
				}
				continue
			}
			want, bulk := float64(p.beta)*float64(old), math.Abs(float64(p.beta)*float64(old))
			for l := range p.k {
				v := float64(p.alpha) * p.elementA(i, l) * p.elementB(l, j)
				want += v
				bulk += math.Abs(v)
			}
			if diff := math.Abs(float64(got[i*p.ldc+j]) - want); !(diff <= 1e-6*bulk) {
				t.Fatalf("%v: C(%d,%d) = %v, want %v", p.shape(), i, j, got[i*p.ldc+j], want)
			}
		}
	}
}

func (p product) shape() string {
	return fmt.Sprintf("%dx%dx%d transposed %v %v, strides %d %d %d, alpha %v, beta %v",
		p.m, p.n, p.k, p.transA, p.transB, p.lda, p.ldb, p.ldc, p.alpha, p.beta)
}

func TestSgemm(t *testing.T) {
	every(t, func(t *testing.T, im Implementation) {
		r := rand.New(rand.NewPCG(1, 2))
		sizes := []int{1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 29, 31, 32, 33, 40, 63, 65, 100}
		factors := []float32{0, 1, -1, 0.5, 2}
		products := 1500
		switch {
		case race.Enabled:
			products = 20
		case testing.Short():
			products = 200
		}
		for range products {
			m, n, k := sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))]
			p := randomProduct(r, r.IntN(2) == 0, r.IntN(2) == 0, m, n, k)
			p.alpha, p.beta = factors[r.IntN(5)], factors[r.IntN(5)]
			p.check(t, p.run(im))
		}
		for _, s := range [][3]int{ // beyond each block, with strides that get A copied
			{400, 70, 900}, {30, 1600, 400}, {20, 40, 1024}, {200, 200, 512}, {1, 1, 5000}, {15, 33, 385}, {28, 65, 384},
			{5, 3, 0}, {29, 32, 768},
		} {
			for form := range 4 {
				p := randomProduct(r, form&1 == 1, form&2 == 2, s[0], s[1], s[2])
				p.check(t, p.run(im))
			}
		}
	})
}

// An element has the same bits for a row alone, for rows in another place, with other columns and
// on more goroutines.
func TestBitsAreTheElementsOwn(t *testing.T) {
	every(t, func(t *testing.T, im Implementation) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, s := range [][3]int{{67, 131, 500}, {300, 40, 77}, {200, 300, 800}, {4, 1700, 33}} {
			for form := range 8 {
				p := randomProduct(r, form&1 == 1, form&2 == 2, s[0], s[1], s[2])
				p.alpha, p.beta = 0.7, float32(form>>2)
				whole := p.run(im)
				for range 12 {
					i, j := r.IntN(p.m), r.IntN(p.n)
					m, n := 1+r.IntN(p.m-i), 1+r.IntN(p.n-j)
					if r.IntN(3) == 0 {
						m = 1
					}
					part := p.part(i, m, j, n)
					got := part.run(im)
					for x := range m {
						if at := (i+x)*p.ldc + j; !slices.Equal(got[x*p.ldc:][:n], whole[at:at+n]) {
							t.Fatalf("%s: row %d differs within %s from %d,%d on", p.shape(), i+x, part.shape(), i, j)
						}
					}
				}
			}
		}
	})
}

func TestKernelsAgree(t *testing.T) {
	all := supported()
	if len(all) < 2 {
		t.Skip("one set of kernels at most on this processor")
	}
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range [][3]int{{67, 131, 500}, {300, 40, 77}, {33, 17, 1}, {1, 1, 900}} {
		for form := range 8 {
			p := randomProduct(r, form&1 == 1, form&2 == 2, s[0], s[1], s[2])
			p.alpha, p.beta = 1.3, 0.5*float32(form>>2)
			want := p.run(newImplementation(all[0]))
			for _, k := range all[1:] {
				if !slices.Equal(p.run(newImplementation(k)), want) {
					t.Errorf("%s: %s and %s differ", p.shape(), all[0].name, k.name)
				}
			}
		}
	}
}

func TestNotNumbers(t *testing.T) {
	every(t, func(t *testing.T, im Implementation) {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		for _, n := range []int{1, 20, 32} {
			c := slices.Repeat([]float32{nan}, 2*n)
			b := slices.Repeat([]float32{1}, n)
			im.Sgemm(blas.NoTrans, blas.NoTrans, 2, n, 1, 1, []float32{2, inf}, 1, b, n, 0, c, n)
			for j := range n {
				if c[j] != 2 || c[n+j] != inf {
					t.Errorf("with beta 0, C starts from nothing: got %v and %v, want 2 and +Inf", c[j], c[n+j])
				}
			}
			im.Sgemm(blas.NoTrans, blas.NoTrans, 2, n, 1, 1, []float32{nan, 1}, 1, b, n, 1, c, n)
			if c[0] == c[0] || c[n] != inf {
				t.Errorf("adding NaN and 1: got %v and %v, want NaN and +Inf", c[0], c[n])
			}
			im.Sgemm(blas.NoTrans, blas.NoTrans, 2, n, 1, 0, []float32{nan, nan}, 1, b, n, 0, c, n)
			if c[0] != 0 || c[n] != 0 {
				t.Errorf("with alpha 0, A is not read: got %v and %v, want 0", c[0], c[n])
			}
		}
	})
}

func TestPanicsAsGonum(t *testing.T) {
	reason := func(im blas.Float32Level3, tA blas.Transpose, m, n, k, lda, ldb, ldc, short int) (r any) {
		defer func() { r = recover() }()
		x := make([]float32, 100)
		a, b, c := x, x, x
		switch short {
		case 1:
			a = x[:3]
		case 2:
			b = x[:3]
		case 3:
			c = x[:3]
		}
		im.Sgemm(tA, blas.NoTrans, m, n, k, 1, a, lda, b, ldb, 1, c, ldc)
		return nil
	}
	every(t, func(t *testing.T, im Implementation) {
		for _, s := range [][8]int{
			{2, 2, 2, 2, 2, 2}, {-1, 2, 2, 2, 2, 2}, {2, -1, 2, 2, 2, 2}, {2, 2, -1, 2, 2, 2}, {2, 2, 2, 1, 2, 2}, {2, 2,
				2, 2, 1, 2}, {2, 2, 2, 2, 2, 1},
			{2, 2, 2, 2, 2, 2, 1}, {2, 2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 2, 2, 3}, {0, 2, 2, 2, 2, 2}, {2, 0, 2, 2, 1, 1},
			{2, 2, 0, 1, 2, 2}, {0, 0, 0, 0, 0, 0},
		} {
			for _, tA := range []blas.Transpose{blas.NoTrans, blas.Trans, 'x'} {
				got := reason(im, tA, s[0], s[1], s[2], s[3], s[4], s[5], s[6])
				if want := reason(im.Implementation, tA, s[0], s[1], s[2], s[3], s[4], s[5], s[6]); got != want {
					t.Errorf("Sgemm(%c, %v): %v, want %v", tA, s, got, want)
				}
			}
		}
	})
}

func FuzzSgemm(f *testing.F) {
	f.Add(uint64(1), uint16(14), uint16(32), uint16(384), byte(0))
	f.Add(uint64(2), uint16(169), uint16(33), uint16(385), byte(7))
	f.Add(uint64(3), uint16(1), uint16(1), uint16(0), byte(15))
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint16, form byte) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := randomProduct(r, form&1 == 1, form&2 == 2, int(m%200)+1, int(n%100)+1, int(k%500))
		p.alpha, p.beta = float32(form>>2&1)+0.5, float32(form>>3&1)
		for _, k := range supported() {
			p.check(t, p.run(newImplementation(k)))
		}
	})
}
