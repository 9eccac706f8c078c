package blas

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// grain is the number of multiply-adds that are worth a goroutine: some 40 µs.
const grain = 4 << 20

// share computes p on this goroutine and on further ones, as many as are worth starting and find an
// idle core. The pieces are computed independently, so neither their number nor their shapes change
// a bit of C.
func (im Implementation) share(p product) {
	cores := runtime.GOMAXPROCS(0)
	if im.cores > 0 {
		cores = min(cores, im.cores)
	}
	idle := int64(cores) - im.running.Add(1)
	defer im.running.Add(-1)
	workers := int(min(idle+1, int64(p.m)*int64(p.n)*int64(p.k)/grain))
	if workers < 2 {
		im.multiply(p)
		return
	}
	across, down := im.cut(p, workers)
	cols := roundUp(ceil(p.n, across), im.width)
	rows := roundUp(ceil(p.m, down), im.tiles[0].rows)
	across, down = ceil(p.n, cols), ceil(p.m, rows)

	var next atomic.Int64
	work := func() {
		for {
			t := int(next.Add(1)) - 1
			if t >= across*down {
				return
			}
			i, j := t/across*rows, t%across*cols
			im.multiply(p.part(i, min(rows, p.m-i), j, min(cols, p.n-j)))
		}
	}
	var helpers sync.WaitGroup
	for range min(workers, across*down) - 1 {
		im.running.Add(1)
		helpers.Go(func() {
			defer im.running.Add(-1)
			work()
		})
	}
	work()
	helpers.Wait()
}

// cut is the number of pieces across and down C. It cuts columns first: pieces side by side pack
// different columns of B, whereas pieces one below the other pack the same columns twice.
func (im Implementation) cut(p product, workers int) (across, down int) {
	const panels = 4 // a piece's least width
	across = max(1, min(workers, p.n/(panels*im.width)))
	down = max(1, min(ceil(workers, across), p.m/(2*im.tiles[0].rows)))
	return across, down
}

func ceil(a, b int) int    { return (a + b - 1) / b }
func roundUp(a, b int) int { return ceil(a, b) * b }
