package engine

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/internal/race"
)

// A filter has every key of the state and every one added, few others, and gives up when there are
// too many.
func TestKeyFilter(t *testing.T) {
	race.SkipComputing(t)
	db, err := pebble.Open("state", &pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // test
	size := FilterSize{Bytes: 1 << 20, Room: 1 << 20}
	room := int(size.Room)
	key := func(i int) []byte { return fmt.Append(nil, "hnode-", i) }
	for i := range 1000 {
		if err := db.Set(key(i), nil, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	f, err := NewKeyFilter(db, 'h', size, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1000; i < room/2; i++ {
		f.Add(key(i))
	}
	for i := range room / 2 {
		if !f.MayHave(key(i)) {
			t.Fatalf("%s is missing", key(i))
		}
	}
	wrong := 0
	for i := range 100_000 {
		if f.MayHave(key(-i - 1)) {
			wrong++
		}
	}
	if wrong > 2000 {
		t.Errorf("%d of 100,000 keys that are not there may be", wrong)
	}
	for i := range 3 * room {
		f.Add(key(i))
	}
	if f.blocks != nil || !f.MayHave([]byte("anything")) {
		t.Error("a filter with too many keys says that some are not there")
	}
	if f, err := NewKeyFilter(db, 'h', size, size.Room+1, nil); err != nil || f.blocks != nil {
		t.Errorf("a filter for too many keys has %d blocks; error %v", len(f.blocks), err)
	}
}
