package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
)

var (
	seeds  = flag.Int("seeds", 0, "how many seeds to simulate; 0 means 100, or 4 with -short")
	start  = flag.Uint64("start", 1, "the first seed")
	events = flag.Bool("events", false, "print every event")
)

func count() int {
	switch {
	case *seeds > 0:
		return *seeds
	case testing.Short():
		return 4
	}
	return 100
}

// The invariants of docs/PROTOCOL.md hold for every seed.
//
// All seeds run in one bubble. The Parquet and Zstandard libraries pool objects that hold channels, and a channel made
// in one bubble cannot be used in another.
func TestSimulation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var line func(string)
		if *events {
			line = func(s string) { fmt.Fprintln(os.Stderr, s) }
		}
		total := newTotal(count(), os.Stderr)
		var traces []string
		for i := range uint64(count()) {
			seed := *start + i
			total.begin(seed)
			r := Run(seed, line)
			total.add(&r)
			traces = append(traces, r.Trace)
			if r.Failure != "" {
				t.Errorf("seed %d breaks a rule: %s\n\nits last events:\n%s\n\nreplay with\n"+
					"  go test ./cmd/internal/sim -run TestSimulation -seeds 1 -start %d -events",
					seed, r.Failure, r.Tail, seed)
				break
			}
		}
		total.report()
		if !t.Failed() {
			replays(t, traces[:min(count(), 30)])
		}
	})
}

// replays simulates the first seeds again: all that happens is the same, so a failure can be looked at again. A few
// differences are allowed. The storage engine works in goroutines of its own, and when the scheduler interrupts them
// depends on the machine's load.
func replays(t *testing.T, traces []string) {
	n, differ := len(traces), 0
	for i, trace := range traces {
		again := Run(*start+uint64(i), nil)
		if again.Trace != trace {
			differ++
			t.Logf("seed %d: trace %s, then %s", again.Seed, trace, again.Trace)
		}
	}
	t.Logf("%d of %d seeds had another trace the second time", differ, n)
	if differ > 1+n/5 {
		t.Errorf("%d of %d seeds had another trace the second time", differ, n)
	}
}

// inBubble runs f in a bubble of virtual time, on one processor, so that goroutines take turns in the same order each
// time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	synctest.Test(t, f)
}
