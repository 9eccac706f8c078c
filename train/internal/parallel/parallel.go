// Package parallel runs loops over blocks whose bounds depend on the length
// of the loop alone. What a block computes, and any sum over blocks taken in
// block order, is then the same however many goroutines share the work.
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

// Each calls body for every block [lo, hi) of size items of 0..n, on at most
// workers goroutines. worker numbers the goroutine, so that it can own
// scratch memory; which worker gets which block is not determined.
func Each(n, size, workers int, body func(worker, lo, hi int)) {
	blocks := (n + size - 1) / size
	workers = min(Workers(workers), blocks)
	if workers <= 1 {
		for lo := 0; lo < n; lo += size {
			body(0, lo, min(n, lo+size))
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for {
				lo := (int(next.Add(1)) - 1) * size
				if lo >= n {
					return
				}
				body(w, lo, min(n, lo+size))
			}
		})
	}
	wg.Wait()
}
