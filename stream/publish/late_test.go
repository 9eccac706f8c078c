package publish

import (
	"context"
	"errors"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/stream"
)

// A worker stands still in the midst of sending, loses its shard, and its
// records arrive after the newer ones of the worker that took over: those are
// published again, whether the late worker notices by itself or its context
// has ended.
func TestLateRecordsAreOverwritten(t *testing.T) {
	for _, ended := range []bool{false, true} {
		store, to := &memstore.Store{}, &topic{}
		g1 := generationAt(t, store, 1, 0)
		model := func() *Model { return g1 }
		commit(t, store, 1, [2]string{"a", "a"})
		late, next := follower(store, to, model), follower(store, to, model)
		settle(t, late)
		commit(t, store, 2, [2]string{"a", "aa"})

		ctx, cancel := context.WithCancel(t.Context())
		to.fail = func(int) error {
			to.fail = nil // what follows is sent while the first worker stands still
			commit(t, store, 3, [2]string{"a", "aaa"}, [2]string{"b", ""})
			settle(t, next)
			expect(t, to, "a g1 m3 [103]", "b g1 m3 gone")
			if ended {
				cancel()
			}
			return nil
		}
		if _, err := late.Step(ctx); err == nil || !ended && !errors.Is(err, ErrNotAlone) {
			t.Errorf("ended %t: the late worker's step: %v, want an error", ended, err)
		}
		cancel()
		expect(t, to, "a g1 m2 [102]", "b g1 m3 gone") // stale, for a moment
		settle(t, next)
		expect(t, to, "a g1 m3 [103]", "b g1 m3 gone")
		if got := next.Position(); got != (stream.Published{Generation: 1, Seq: 3}) {
			t.Errorf("ended %t: position %+v", ended, got)
		}
	}
}

// A worker that failed while nobody else was there just sends again.
func TestFailureAloneMovesNothingBack(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	g1 := generationAt(t, store, 1, 0)
	f := follower(store, to, func() *Model { return g1 })
	commit(t, store, 1, [2]string{"a", "a"})
	settle(t, f)
	commit(t, store, 2, [2]string{"a", "aa"})
	broken := errors.New("injected")
	to.fail = func(int) error { to.fail = nil; return broken }
	if _, err := f.Step(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if got, err := stream.LoadPublished(t.Context(), store, shard); err != nil || got.Seq != 1 {
		t.Errorf("cursor %+v (%v), want to stay at 1", got, err)
	}
	settle(t, f)
	expect(t, to, "a g1 m2 [102]")
}
