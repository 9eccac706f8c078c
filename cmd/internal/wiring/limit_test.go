package wiring

import (
	"math"
	"runtime/debug"
	"testing"
)

// The runtime gets less than the process may take; without a bound it keeps what it has.
func TestLimitMemoryLeavesHeadroom(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for limit := int64(64 << 20); limit < 1<<40; limit = limit*3 + 17 {
		LimitMemory(limit)
		if got := debug.SetMemoryLimit(-1); got > limit-limit/20 || got < limit-limit/10 {
			t.Errorf("limit %d: the runtime has %d", limit, got)
		}
		now := debug.SetMemoryLimit(-1)
		for _, none := range []int64{0, math.MaxInt64} {
			if LimitMemory(none); debug.SetMemoryLimit(-1) != now {
				t.Errorf("%d changed the limit", none)
			}
		}
	}
}
