package blas

import (
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/gonum"
)

// Implementation is a blas.Float32. Copies share buffers and the count of
// products that are running; it is safe for concurrent use.
type Implementation struct {
	gonum.Implementation
	*kernels
	buffers *sync.Pool    // of *buffers
	running *atomic.Int64 // goroutines that are multiplying
	cores   int           // that a product may use, 0 for all
}

// New returns the fastest implementation for this processor.
func New() Implementation { return newImplementation(fastest()) }

// Limit returns an implementation that spreads a product over at most the given number of cores, 0
// for all. A caller with several goroutines can use that many for each of them. The limit does not
// change a result.
func (im Implementation) Limit(cores int) Implementation {
	im.cores = max(cores, 0)
	return im
}

// Kernels names what computes the products: "avx512", "avx2" or "gonum".
func (im Implementation) Kernels() string {
	if im.kernels == nil {
		return "gonum"
	}
	return im.name
}

func newImplementation(k *kernels) Implementation {
	return Implementation{
		kernels: k,
		buffers: &sync.Pool{New: func() any { return new(buffers) }},
		running: new(atomic.Int64),
	}
}

// kernels is one instruction set's share of the work.
type kernels struct {
	name  string
	width int    // columns of a tile
	tiles []tile // by rows, descending to 1; the first is the workhorse

	// transpose8 writes the transpose of 8 × 8·blocks numbers: 8 rows of src,
	// ss bytes apart, become 8·blocks rows of dst, ds bytes apart.
	transpose8 func(dst *float32, ds uintptr, src *float32, ss uintptr, blocks int)
	dot        func(n int, x, y *float32) float32
	axpy       func(n int, alpha float32, x, y *float32)
}

// tile multiplies rows × k of A by k × width of B.
type tile struct {
	rows int
	run  tileFunc
}

// tileFunc sets (or adds to, if add) a tile of C, with rows ldc bytes apart,
// alpha·A·B. Element (i, p) of A lies i·rs + p·cs bytes after a, row p of B lies
// p·bs bytes after b, without gaps in it; k is at least 1.
type tileFunc func(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32,
	ldc uintptr, add bool)

// Sdot returns x·y. Strides other than 1 and invalid arguments are passed to gonum.
func (im Implementation) Sdot(n int, x []float32, incX int, y []float32, incY int) float32 {
	if im.kernels == nil || incX != 1 || incY != 1 || n <= 0 || len(x) < n || len(y) < n {
		return im.Implementation.Sdot(n, x, incX, y, incY)
	}
	return im.dot(n, &x[0], &y[0])
}

// Saxpy adds alpha·x to y.
func (im Implementation) Saxpy(n int, alpha float32, x []float32, incX int, y []float32, incY int) {
	if im.kernels == nil || incX != 1 || incY != 1 || n <= 0 || len(x) < n || len(y) < n || alpha == 0 {
		im.Implementation.Saxpy(n, alpha, x, incX, y, incY)
		return
	}
	im.axpy(n, alpha, &x[0], &y[0])
}
