package cpu

import (
	"fmt"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/internal/parallel"
	"giantstream/train/encoders/bert/compute"
)

// Backend implements compute.Backend.
type Backend struct {
	workers int
	scratch *sync.Pool // *scratch
}

var _ compute.Backend = (*Backend)(nil)

// New returns a backend that runs an operation on the goroutine that calls it.
func New() *Backend {
	return &Backend{workers: 1, scratch: &sync.Pool{New: func() any { return new(scratch) }}}
}

// Spread implements compute.Backend.
func (be *Backend) Spread(workers int) compute.Backend {
	b := *be
	b.workers = parallel.Workers(workers)
	return &b
}

// scratch is memory that a goroutine needs while it works on a block.
type scratch struct {
	attention attention
	rows      []float32 // one row of a normalization, or of sums of columns
	blocks    []float32 // sums of all blocks of an operation
}

// forEachBlock runs body over blocks of size of n items. Blocks do not depend on the
// number of workers, so neither does what is summed within one.
func (be *Backend) forEachBlock(n, size int, body func(s *scratch, block, lo, hi int)) {
	parallel.ForEach(n, size, be.workers, func(_, block, lo, hi int) {
		s := be.scratch.Get().(*scratch)
		body(s, block, lo, hi)
		be.scratch.Put(s)
	})
}

func resize[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}

const (
	// blockRows is how many rows a goroutine takes at a time.
	blockRows = 64
	// blockNumbers is the same where rows do not matter.
	blockNumbers = 1 << 15
)

type buffer []float32

func (b buffer) Len() int { return len(b) }

// numbers returns a buffer's array. A buffer of another backend is a mistake
// of the program.
func numbers(b compute.Buffer) []float32 { return b.(buffer) }

// New implements compute.Backend.
func (*Backend) New(n int) compute.Buffer { return make(buffer, n) }

// Upload implements compute.Backend; the buffer is data itself.
func (*Backend) Upload(data []float32) compute.Buffer { return buffer(data) }

// Write implements compute.Backend.
func (*Backend) Write(dst compute.Buffer, src []float32) { copy(numbers(dst)[:len(src)], src) }

// Read implements compute.Backend.
func (*Backend) Read(dst []float32, src compute.Buffer) error {
	if n := copy(dst, numbers(src)); n < len(dst) {
		return fmt.Errorf("cpu: read %d numbers of a buffer of %d", len(dst), n)
	}
	return nil
}

// Operands of multiply as they lie in memory, or transposed.
const (
	plain      = blas.NoTrans
	transposed = blas.Trans
)

// multiply is C = alpha·A·B + beta·C; A is m×k, B is k×n, with the strides lda, ldb, ldc.
func multiply(ta, tb blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	blas32.Implementation().Sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}
