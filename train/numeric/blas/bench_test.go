package blas

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// The shapes of BERT: the linear layers of MiniLM and of BERT-base for 64, 512
// and 4,096 tokens, their gradients, attention within a text of 128 tokens, and
// products over all nodes.
//
//	go test -run '^$' -bench Sgemm -cpu 1 ./train/numeric/blas
func BenchmarkSgemm(b *testing.B) {
	type shape struct {
		form    string
		m, n, k int
	}
	var shapes []shape
	for _, layer := range [][2]int{{384, 384}, {384, 1152}, {384, 1536}, {1536, 384}, {768, 768}, {768, 2304},
		{768, 3072}, {3072, 768}} {
		k, n := layer[0], layer[1]
		for _, tokens := range []int{64, 512, 4096} {
			shapes = append(shapes, shape{"NN", tokens, n, k})
		}
		shapes = append(shapes, shape{"NT", 512, k, n}, shape{"TN", k, n, 512})
	}
	shapes = append(shapes,
		shape{"NN", 1, 1536, 384}, shape{"NN", 14, 1536, 384}, shape{"NN", 37, 37, 32}, shape{"NN", 37, 32, 37},
		shape{"NN", 128, 128, 32}, shape{"NN", 128, 32, 128}, shape{"NT", 128, 128, 32}, shape{"TN", 128, 32, 128},
		shape{"NN", 60000, 256, 512}, shape{"TN", 512, 512, 60000})
	r := rand.New(rand.NewPCG(1, 1))
	x := random(r, 60000*512)
	y := random(r, 60000*512)
	for _, s := range shapes {
		ta, tb := s.form[0] == 'T', s.form[1] == 'T'
		p := product{transA: ta, transB: tb, m: s.m, n: s.n, k: s.k, alpha: 1, a: x, lda: s.k, b: y, ldb: s.n,
			beta: 1, c: make([]float32, s.m*s.n), ldc: s.n}
		if ta {
			p.lda = s.m
		}
		if tb {
			p.ldb = s.k
		}
		run := func(name string, im interface {
			Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
				beta float32, c []float32, ldc int)
		}) {
			b.Run(fmt.Sprintf("%s/%s/%dx%dx%d", name, s.form, s.m, s.n, s.k), func(b *testing.B) {
				for b.Loop() {
					im.Sgemm(trans(ta), trans(tb), p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc)
				}
				b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9,
					"GFLOPS")
			})
		}
		for _, k := range supported() {
			run(k.name, newImplementation(k))
		}
		run("gonum", gonum.Implementation{})
	}
}
