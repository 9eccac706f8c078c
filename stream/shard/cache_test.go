package shard

import (
	"testing"

	"giantstream/stream/shard/engine"
)

// However many states a process has, their memtables and filters stay within one bound, down to a least size
// of each memtable.
func TestStatesShareMemory(t *testing.T) {
	if n := new(Cache).sharing(0); n != 1 {
		t.Errorf("a state of no pipeline shares with %d", n)
	}
	for _, told := range []bool{false, true} {
		for states := 1; states <= 300; states++ {
			c, shards := &Cache{}, states
			if told {
				c.Share(states)
				shards = 1000
			}
			size := memTableBytes(c.sharing(shards))
			if size < memTableMin || size > memTableMax {
				t.Fatalf("%d states: a memtable of %d bytes", states, size)
			}
			if total := states * stateMemTables * size; total > max(memTablesBytes, states*stateMemTables*memTableMin) {
				t.Errorf("%d states: memtables of %d bytes", states, total)
			}
			for _, full := range []engine.FilterSize{nodeFilterSize, linkFilterSize} {
				one := full.ShareFor(c.sharing(shards))
				if states*one.Bytes > engine.FullFilters*full.Bytes || one.Bytes < 64 || one.Bytes%64 != 0 {
					t.Errorf("%d states: filters of %d bytes each", states, one.Bytes)
				}
				if was, is := float64(full.Bytes)/float64(full.Room), float64(one.Bytes)/float64(one.Room); is < was*0.99 {
					t.Errorf("%d states: %.2f bytes for a key, were %.2f", states, is, was)
				}
			}
		}
	}
}
