package vectordb_test

import (
	"flag"
	"testing"

	"giantstream/sink/vectordb/vectordbtest"
)

// TestFollower: the follower alone, on a database that does all that is asked of one.
func TestFollower(t *testing.T) {
	if vectordbtest.Seeds() < 100 { // they take milliseconds here
		if err := flag.Set("sink-seeds", "100"); err != nil {
			t.Fatal(err)
		}
	}
	vectordbtest.Run(t, func(*testing.T) vectordbtest.Target {
		m := vectordbtest.NewMemory()
		return vectordbtest.Target{Open: m.Process, Rows: m.Rows, Tables: m.Tables, Exact: true, Vectorless: true,
			Attributes: true,
			Delayed:    true}
	})
}
