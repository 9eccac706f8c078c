package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"giantstream/sink"
)

// replacer returns the store as one that compares and swaps, and skips the test of one that does not.
func replacer(t *testing.T, s sink.Store) sink.Replacer {
	t.Helper()
	r, ok := s.(sink.Replacer)
	if !ok {
		t.Skip("this store has no compare-and-swap")
	}
	return r
}

func replace(t *testing.T, s sink.Store) {
	r := replacer(t, s)
	if err := r.Replace(t.Context(), "a/x", nil, []byte("1")); !errors.Is(err, sink.ErrNotFound) {
		t.Errorf("nothing to replace: %v", err)
	}
	put(t, s, "a/x", "1")
	if err := r.Replace(t.Context(), "a/x", []byte("1"), []byte("2")); err != nil {
		t.Fatal(err)
	}
	wantObject(t, s, "a/x", "2")
	if err := r.Replace(t.Context(), "a/x", []byte("1"), []byte("3")); !errors.Is(err, sink.ErrChanged) {
		t.Errorf("other bytes: %v", err)
	}
	wantObject(t, s, "a/x", "2")
	if err := r.Replace(t.Context(), "a/x", []byte("1"), []byte("2")); err != nil {
		t.Errorf("a repetition: %v", err)
	}
	if err := r.Replace(t.Context(), "../x", nil, nil); !errors.Is(err, sink.ErrBadKey) {
		t.Errorf("bad key: %v", err)
	}
	if keys := listKeys(t, s, "", ""); len(keys) != 1 {
		t.Errorf("keys %v", keys)
	}
}

// Of many that replace the same bytes by bytes of their own, exactly one succeeds.
func replaceRace(t *testing.T, s sink.Store) {
	r := replacer(t, s)
	put(t, s, "x", "0")
	var (
		wg   sync.WaitGroup
		wins atomic.Int32
	)
	for i := range 8 {
		wg.Go(func() {
			switch err := r.Replace(t.Context(), "x", []byte("0"), fmt.Appendf(nil, "writer %d", i)); {
			case err == nil:
				wins.Add(1)
			case !errors.Is(err, sink.ErrChanged):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d writers have won", wins.Load())
	}
}
