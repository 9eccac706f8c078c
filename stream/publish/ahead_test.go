package publish

import (
	"context"
	"errors"
	"testing"
	"time"

	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// aheadFollower lets its cursor stay behind for as long as every says.
func aheadFollower(store *memstore.Store, to *topic, model func() *Model, every *time.Duration) *Follower {
	f := follower(store, to, model)
	f.opts.SaveEvery = func() time.Duration { return *every }
	return f
}

func wantCursor(t *testing.T, store *memstore.Store, what string, seq int64) {
	t.Helper()
	if got, err := commitlog.LoadPublished(t.Context(), store, shard); err != nil || got.Seq != seq {
		t.Errorf("%s: the cursor stands at %d (%v), want %d", what, got.Seq, err, seq)
	}
}

// A follower publishes each window at once, and moves the cursor now and then. What a crash leaves unsaved is published
// again, and after it the same as before.
func TestCursorStaysBehind(t *testing.T) {
	store, to, every := &memstore.Store{}, &topic{}, time.Hour
	g1 := generationAt(t, store, 1, 0)
	model := func() *Model { return g1 }
	f := aheadFollower(store, to, model, &every)
	commit(t, store, 1, [2]string{"a", "a"})
	catchUp(t, f)
	wantCursor(t, store, "after the switch to the generation", 0)
	commit(t, store, 2, [2]string{"a", "aa"})
	catchUp(t, f)
	commit(t, store, 3, [2]string{"b", "b"})
	catchUp(t, f)
	expect(t, to, "a g1 m2 [102]", "b g1 m3 [101]")
	wantCursor(t, store, "before the time is over", 0)

	sent := len(to.records)
	next := aheadFollower(store, to, model, &every)
	catchUp(t, next)
	if again := len(to.records) - sent; again != 2 {
		t.Errorf("after a crash %d records are published again, want the newest rows of a and b", again)
	}
	expect(t, to, "a g1 m2 [102]", "b g1 m3 [101]")
	wantCursor(t, store, "a follower that has taken over", 3)

	commit(t, store, 4, [2]string{"b", ""})
	catchUp(t, next)
	wantCursor(t, store, "before the time is over", 3)
	every = 0
	catchUp(t, next)
	wantCursor(t, store, "when the time is over", 4)
}

// A follower that is stopped in good order leaves nothing to publish again.
func TestCursorIsSavedAtTheEnd(t *testing.T) {
	store, to, every := &memstore.Store{}, &topic{}, time.Hour
	g1 := generationAt(t, store, 1, 0)
	f := aheadFollower(store, to, func() *Model { return g1 }, &every)
	commit(t, store, 1, [2]string{"a", "a"})
	catchUp(t, f)
	commit(t, store, 2, [2]string{"a", "aa"})
	ctx, cancel := context.WithCancel(t.Context())
	to.fail = func(int) error { cancel(); return nil }
	f.opts.Poll = time.Hour
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
	expect(t, to, "a g1 m2 [102]")
	wantCursor(t, store, "at the end", 2)
}

// A new generation begins with the cursor past all that was published with the one before.
func TestCursorIsSavedBeforeASwitch(t *testing.T) {
	store, to, every := &memstore.Store{}, &topic{}, time.Hour
	current := generationAt(t, store, 1, 0)
	f := aheadFollower(store, to, func() *Model { return current }, &every)
	commit(t, store, 1, [2]string{"a", "a"}, [2]string{"b", "b"})
	catchUp(t, f)
	commit(t, store, 2, [2]string{"a", ""})
	catchUp(t, f)
	commit(t, store, 3, [2]string{"c", "c"})
	current = generationAt(t, store, 2, 2, embedded("b", 1, 22))
	catchUp(t, f)
	expect(t, to, "a g1 m2 gone", "b g2 m1 [22]", "c g2 m3 [201]")
}

// A worker was frozen while its cursor was behind. Its successor has published, and the late worker sends nothing more:
// it looks at the cursor first, and moves it back to where it was itself.
func TestLateFollowerAheadOfItsCursor(t *testing.T) {
	store, to, every := &memstore.Store{}, &topic{}, time.Hour
	g1 := generationAt(t, store, 1, 0)
	model := func() *Model { return g1 }
	late, next := aheadFollower(store, to, model, &every), aheadFollower(store, to, model, &every)
	commit(t, store, 1, [2]string{"a", "a"})
	catchUp(t, late)
	commit(t, store, 2, [2]string{"a", "aa"})
	catchUp(t, late)
	commit(t, store, 3, [2]string{"a", "aaa"})
	catchUp(t, next)
	sent := len(to.records)
	if _, err := late.Step(t.Context()); !errors.Is(err, ErrNotAlone) {
		t.Errorf("the late worker's step: %v, want ErrNotAlone", err)
	}
	if len(to.records) != sent {
		t.Errorf("the late worker has sent %d records", len(to.records)-sent)
	}
	wantCursor(t, store, "the late worker", 0)
	catchUp(t, next)
	expect(t, to, "a g1 m3 [103]")
}

// A failure that comes before anything is sent loses nothing of what was published.
func TestFailedLookKeepsThePosition(t *testing.T) {
	store, to, every := &memstore.Store{}, &topic{}, time.Hour
	g1 := generationAt(t, store, 1, 0)
	f := aheadFollower(store, to, func() *Model { return g1 }, &every)
	commit(t, store, 1, [2]string{"a", "a"})
	catchUp(t, f)
	commit(t, store, 2, [2]string{"a", "aa"})
	catchUp(t, f)
	broken, sent := errors.New("injected"), len(to.records)
	store.Fail = func(string, string) error { return broken }
	if _, err := f.Step(t.Context()); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	store.Fail = nil
	catchUp(t, f)
	if len(to.records) != sent {
		t.Errorf("%d records are published again", len(to.records)-sent)
	}
}
