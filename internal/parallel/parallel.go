// Package parallel runs a loop over fixed blocks on several goroutines.
//
// The blocks depend only on the length of the loop, never on the number of workers. So a result
// that is computed per block and combined in block order is the same on any machine.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Workers returns n, or the number of usable CPUs when n is not positive.
func Workers(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Blocks returns how many blocks of size (≥ 1) cover n items.
func Blocks(n, size int) int { return (n + size - 1) / size }

// ForEach divides 0..n into blocks [lo, hi) of size items, and calls body for each. Blocks start in order,
// on at most Workers(workers) goroutines. worker numbers the goroutine from 0, so that each goroutine can
// own scratch memory. ForEach panics in the caller's goroutine if body panics in any.
func ForEach(n, size, workers int, body func(worker, block, lo, hi int)) {
	blocks := Blocks(n, size)
	workers = min(Workers(workers), blocks)
	if workers <= 1 {
		for b := range blocks {
			body(0, b, b*size, min(n, (b+1)*size))
		}
		return
	}
	var next atomic.Int64
	var (
		wg     sync.WaitGroup
		failed panics
	)
	for w := range workers {
		wg.Go(func() {
			defer failed.keep()
			for {
				b := int(next.Add(1)) - 1
				if b >= blocks {
					return
				}
				body(w, b, b*size, min(n, (b+1)*size))
			}
		})
	}
	wg.Wait()
	failed.raise()
}
