package shard

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Crashes at any moment, with or without loss of the disk, leave the rows of an undisturbed run.
func TestCrashesLeaveNoTrace(t *testing.T) {
	for seed := range uint64(roundsOf(30)) {
		checkpoints := seed%2 == 1
		t.Run(fmt.Sprintf("%d/checkpoints %t", seed, checkpoints), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			b := newBroker(1 + rng.IntN(3))
			fill(b, rng, 200, 6+rng.IntN(60))
			p := newPipeline(t, b, seed)
			p.window.Changes = 1 + rng.IntN(30)
			p.checkpoints = checkpoints
			p.drain(40)
			sameRows(t, p.newest(), model(b.everything(), true))
			p.checkLog()
			if checkpoints {
				p.checkRestored()
			}
			if t.Failed() {
				t.Fatalf("seed %d, %d crashes", seed, p.lost)
			}
		})
	}
}

// Every call to the store and the mirror fails once, before or after it took effect; the shard is
// reopened, and the outcome is that of a run in which nothing failed.
func TestErrorAtEveryCall(t *testing.T) {
	step := 100 / roundsOf(100) // in a short run every eighth call, say
	for _, mode := range []string{"before", "after", "before, with checkpoints", "after, with checkpoints"} {
		t.Run(mode, func(t *testing.T) {
			for n := 1; ; n += step {
				rng := rand.New(rand.NewPCG(7, 3))
				b := newBroker(2)
				fill(b, rng, 80, 20)
				p := newPipeline(t, b, uint64(n))
				p.window.Changes = 4
				p.checkpoints = strings.HasSuffix(mode, "checkpoints")
				if p.checkpoints { // fewer windows, as each of their calls is a round
					p.window.Changes = 12
				}
				calls, failed := 0, false
				count := func(string) error {
					if calls++; calls == n {
						failed = true
						return errInjected
					}
					return nil
				}
				store := func(op, _ string) error { return count(op) }
				if strings.HasPrefix(mode, "before") {
					p.store.Fail, b.fail = store, count
				} else {
					p.store.FailAfter = store
				}
				p.drain(0)
				p.store.Fail, p.store.FailAfter, b.fail = nil, nil, nil
				sameRows(t, p.newest(), model(b.everything(), true))
				p.checkLog()
				if t.Failed() {
					t.Fatalf("call %d failed %s it took effect", n, mode)
				}
				if !failed {
					t.Logf("%d calls", calls)
					return
				}
			}
		})
	}
}
