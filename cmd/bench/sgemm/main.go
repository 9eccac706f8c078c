// Command sgemm times products of train/blas for compare.py: it reads lines
// "form m n k times", such as "NT 512 384 1152 10", and answers each with the
// seconds of processor time that one product took, on average over times.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	cblas "gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"giantstream/train/blas"
)

func main() {
	useGonum := flag.Bool("gonum", false, "time gonum's Sgemm")
	flag.Parse()
	var im cblas.Float32Level3 = blas.New()
	if *useGonum {
		im = gonum.Implementation{}
	}
	if err := answer(im, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sgemm:", err)
		os.Exit(1)
	}
}

func answer(im cblas.Float32Level3, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
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
		fmt.Fprintln(out, seconds(im, form, m, n, k, times))
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
	start := processorTime()
	for range times {
		product()
	}
	return (processorTime() - start).Seconds() / float64(times)
}

func random(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32() - 0.5
	}
	return x
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // never fails for the own process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
