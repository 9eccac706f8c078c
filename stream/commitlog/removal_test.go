package commitlog

import (
	"math/rand/v2"
	"testing"
	"time"

	"giantstream/sink/memstore"
)

// Files go when ReadNextRemoval says so, and not before, time after time.
func TestNextRemoval(t *testing.T) {
	const grace, history = 24 * time.Hour, 48 * time.Hour
	store := &memstore.Store{}
	if next, err := ReadNextRemoval(t.Context(), store, 0, grace, history); err != nil || next != (NextRemoval{}) {
		t.Errorf("of an empty log: %+v, %v", next, err)
	}
	writeLog(t, store, rand.New(rand.NewPCG(1, 7)), 140, 40)
	putCheckpoint(t, store, 1, 140)
	now := time.Unix(1_000_000, 0)
	merge := testCompactor(store, now)
	merge.opts.Grace = grace
	if _, err := merge.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	// at returns what a compactor removes at a time.
	at := func(now time.Time) (rows, manifests int64) {
		t.Helper()
		c := testCompactor(store, now)
		c.opts.Grace = grace
		merged, err := c.Remove(t.Context(), 140)
		if err != nil {
			t.Fatal(err)
		}
		folded, err := c.Fold(t.Context(), FoldOptions{Keep: 140, History: history, Blocks: 1})
		if err != nil {
			t.Fatal(err)
		}
		return int64(merged.Objects), int64(folded.Objects)
	}
	next := func() NextRemoval {
		t.Helper()
		n, err := ReadNextRemoval(t.Context(), store, 0, grace, history)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := next()
	if !first.Rows.Equal(now.Add(grace)) || first.Waits != 64 || first.Manifests.IsZero() {
		t.Fatalf("%+v", first)
	}
	if rows, manifests := at(first.Manifests.Add(-1)); manifests != 0 || rows > 0 != first.Rows.Before(first.Manifests) {
		t.Errorf("%d row objects and %d manifests before their time", rows, manifests)
	}
	if _, manifests := at(first.Manifests); manifests != 64 {
		t.Errorf("%d manifests in their time", manifests)
	}
	if rows, _ := at(first.Rows); rows > 0 {
		t.Errorf("%d row objects before their time", rows)
	}
	if rows, _ := at(first.Rows.Add(1)); rows == 0 {
		t.Error("no row object in its time")
	}
	if n := next(); !n.Rows.IsZero() || !n.Manifests.IsZero() {
		t.Errorf("all of it is removed, and %+v is next", n)
	}
}
