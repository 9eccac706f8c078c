package graph

import (
	"runtime"
	"testing"
)

// TestCountersStayWithinMemory: there are no more counters than goroutines, however much memory there is, and no more
// than the memory holds, but one.
func TestCountersStayWithinMemory(t *testing.T) {
	for _, c := range []struct {
		workers      int
		memory, each int64
		want         int
	}{
		{0, 1 << 30, 24, runtime.GOMAXPROCS(0)}, // a graph of two nodes
		{0, 0, 24, runtime.GOMAXPROCS(0)},
		{7, 1 << 30, 24, 7},
		{7, 8 * 300, 100, 3},
		{7, 8, 100, 1},
		{7, 1 << 30, 0, 7},
	} {
		if got := countersFor(c.workers, c.memory, c.each); got != c.want {
			t.Errorf("%d goroutines, %d bytes, %d each: %d counters, want %d", c.workers, c.memory, c.each, got, c.want)
		}
	}
}
