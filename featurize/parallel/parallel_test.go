package parallel

import (
	"slices"
	"testing"
)

func TestEachVisitsEveryItemOnceInTheSameBlocks(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 100} {
		var want [][2]int
		for _, workers := range []int{1, 2, 5} {
			got := make([][2]int, Blocks(n, 8))
			Each(n, 8, workers, func(worker, block, lo, hi int) {
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
