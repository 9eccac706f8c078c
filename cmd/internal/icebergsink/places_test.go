package icebergsink

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"giantstream/sink/iceberg"
)

// TestPlaces: the index on the disk is the one in memory.
func TestPlaces(t *testing.T) {
	p, err := openPlaces()
	if err != nil {
		t.Fatal(err)
	}
	rnd, want := rand.New(rand.NewPCG(1, 1)), iceberg.Memory{}
	for range 300 {
		serial := 1 + rnd.Int64N(3)
		var gone []string
		set := map[string]iceberg.Place{}
		for range rnd.IntN(30) {
			node := fmt.Sprint("n", rnd.IntN(100))
			if rnd.IntN(2) == 0 {
				gone = append(gone, node)
			}
			if rnd.IntN(2) == 0 {
				set[node] = iceberg.Place{File: rnd.Uint32(), Row: rnd.Uint32(), Version: rnd.Int64()}
			}
		}
		for _, to := range []iceberg.Places{p, want} {
			if err := to.Change(serial, gone, set); err != nil {
				t.Fatal(err)
			}
		}
		if rnd.IntN(40) == 0 {
			for _, to := range []iceberg.Places{p, want} {
				if err := to.Drop(serial); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for serial := range int64(5) {
		n := 0
		err := p.Range(serial, func(node string, at iceberg.Place) bool {
			if other, ok, _ := want.Get(serial, node); !ok || other != at {
				t.Errorf("table %d, node %s: %v, want %v", serial, node, at, other)
			}
			n++
			return true
		})
		if err != nil || n != len(want[serial]) {
			t.Errorf("table %d has %d nodes, want %d (%v)", serial, n, len(want[serial]), err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("the folder stays: %v", err)
	}
}
