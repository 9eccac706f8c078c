// Command sgemm times products of train/numeric/blas for compare.py. It reads lines "form m n k
// times", such as "NT 512 384 1152 10". It answers each with the processor time of one product in
// seconds, the mean over so many times.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	cblas "gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/train/numeric/blas"
)

func main() {
	useGonum := flag.Bool("gonum", false, "time gonum's Sgemm")
	flag.Parse()
	var im cblas.Float32Level3 = blas.New()
	if *useGonum {
		im = gonum.Implementation{}
	}
	stage.Exit("sgemm", answer(im))
}

func answer(im cblas.Float32Level3) error {
	lines := bufio.NewReader(os.Stdin)
	for {
		var form string
		var m, n, k, times int
		_, err := fmt.Fscan(lines, &form, &m, &n, &k, &times)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || len(form) != 2 {
			return fmt.Errorf("want lines of form, m, n, k and times, such as NN 512 384 384 10: %w", err)
		}
		fmt.Println(seconds(im, form, m, n, k, times))
	}
}

func seconds(im cblas.Float32Level3, form string, m, n, k, times int) float64 {
	a, b, c := random(m*k), random(k*n), make([]float32, m*n)
	tA, tB, lda, ldb := cblas.NoTrans, cblas.NoTrans, k, n
	if form[0] == 'T' {
		tA, lda = cblas.Trans, m
	}
	if form[1] == 'T' {
		tB, ldb = cblas.Trans, k
	}
	product := func() { im.Sgemm(tA, tB, m, n, k, 1, a, lda, b, ldb, 0, c, n) }
	product()
	start := stage.CPUSeconds()
	for range times {
		product()
	}
	return (stage.CPUSeconds() - start) / float64(times)
}

func random(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32() - 0.5
	}
	return x
}
