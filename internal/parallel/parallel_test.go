package parallel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A panic on a goroutine that nobody can recover from would end the process.
func TestPanicReachesTheCaller(t *testing.T) {
	for _, workers := range []int{1, 4} {
		got := func() (v any) {
			defer func() { v = recover() }()
			ForEach(100, 1, workers, func(_, block, _, _ int) {
				if block == 57 {
					panic("block 57")
				}
			})
			return nil
		}()
		if !strings.Contains(fmt.Sprint(got), "block 57") {
			t.Errorf("%d workers: recovered %v", workers, got)
		}
	}
}

func TestEachVisitsEveryItemOnceInTheSameBlocks(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 100} {
		var want [][2]int
		for _, workers := range []int{1, 2, 5} {
			got := make([][2]int, Blocks(n, 8))
			ForEach(n, 8, workers, func(worker, block, lo, hi int) {
				if worker >= workers {
					t.Errorf("worker %d of %d", worker, workers)
				}
				got[block] = [2]int{lo, hi}
			})
			if workers == 1 {
				want = got
				at := 0
				for _, b := range want {
					if b[0] != at || b[1] <= b[0] {
						t.Fatalf("n=%d: block %v does not follow %d", n, b, at)
					}
					at = b[1]
				}
				if at != n {
					t.Fatalf("n=%d: blocks end at %d", n, at)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("n=%d, %d workers: blocks %v, want %v", n, workers, got, want)
			}
		}
	}
}
