package memstore_test

import (
	"errors"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) sink.Store { return new(memstore.Store) })
}

func TestInjectedFailures(t *testing.T) {
	boom := errors.New("boom")
	before := func(op, _ string) error {
		if op == "create" {
			return boom
		}
		return nil
	}
	t.Run("before", func(t *testing.T) {
		s := &memstore.Store{Fail: before}
		if err := s.Create(t.Context(), "x", []byte("1")); !errors.Is(err, boom) {
			t.Errorf("got %v, want the injected error", err)
		}
		if _, err := s.Open(t.Context(), "x"); !errors.Is(err, sink.ErrNotFound) {
			t.Errorf("the failed create took effect: %v", err)
		}
	})
	t.Run("lost response", func(t *testing.T) {
		s := &memstore.Store{FailAfter: before}
		if err := s.Create(t.Context(), "x", []byte("writer 1")); !errors.Is(err, boom) {
			t.Errorf("got %v, want the injected error", err)
		}
		if err := s.Create(t.Context(), "x", []byte("writer 1")); err != nil {
			t.Errorf("the retry of a create whose response was lost: %v", err)
		}
		if err := s.Create(t.Context(), "x", []byte("writer 2")); !errors.Is(err, sink.ErrExists) {
			t.Errorf("another writer: got %v, want ErrExists", err)
		}
	})
}
