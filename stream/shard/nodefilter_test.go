package shard

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A head filter has every id of the state and every one added, few others, and gives up when there
// are too many.
func TestHeadFilter(t *testing.T) {
	db, err := pebble.Open("state", &pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // test
	id := func(i int) string { return fmt.Sprint("node-", i) }
	for i := range 1000 {
		if err := db.Set(headerKey(nil, id(i)), nil, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	f, err := newNodeFilter(db, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1000; i < nodeFilterRoom/2; i++ {
		f.add(id(i))
	}
	for i := range nodeFilterRoom / 2 {
		if !f.mayHave(id(i)) {
			t.Fatalf("%s is missing", id(i))
		}
	}
	wrong := 0
	for i := range 100_000 {
		if f.mayHave(id(-i - 1)) {
			wrong++
		}
	}
	if wrong > 2000 {
		t.Errorf("%d of 100,000 ids that are not there may be", wrong)
	}
	for i := range 3 * nodeFilterRoom {
		f.add(id(i))
	}
	if f.blocks != nil || !f.mayHave("anything") {
		t.Error("a filter with too many ids says that some are not there")
	}
	if f, err := newNodeFilter(db, nodeFilterRoom+1); err != nil || f.blocks != nil {
		t.Errorf("a filter for too many ids has %d blocks; error %v", len(f.blocks), err)
	}
}
