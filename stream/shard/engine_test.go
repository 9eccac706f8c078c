package shard

import "testing"

// However many states a process has, and however many their pipeline has, their memtables stay within one
// bound, down to a least size of each.
func TestMemTablesAreShared(t *testing.T) {
	for _, told := range []bool{false, true} {
		for states := 1; states <= 300; states++ {
			c := NewCache()
			if told {
				c.Share(states)
			}
			total, blocks := 0, c.blocks.MaxSize()
			var giveBack []func()
			for range states {
				size, back := c.addMemTables(states)
				if size < memTableMin || size > memTableMax {
					t.Fatalf("%d states: a memtable of %d bytes", states, size)
				}
				total, giveBack = total+stateMemTables*size, append(giveBack, back)
			}
			if most := max(memTablesBytes, states*stateMemTables*memTableMin); total > most {
				t.Errorf("%d states: memtables of %d bytes, at most %d", states, total, most)
			}
			for _, back := range giveBack {
				back()
			}
			if c.blocks.MaxSize() != blocks {
				t.Errorf("%d states: the cache has %d bytes, had %d", states, c.blocks.MaxSize(), blocks)
			}
			c.Release()
		}
	}
}
