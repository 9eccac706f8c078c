package commitlog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// At any moment of a change of the mapping at most one of two stores has a pipeline that may publish. Each step may be
// repeated, and there is a way back.
func TestRemap(t *testing.T) {
	ctx := t.Context()
	old, next := &memstore.Store{Name: "old"}, &memstore.Store{Name: "next"}
	id, err := commitlog.EnsureIdentity(ctx, old, commitlog.Identity{Name: "shop", Shards: 2}, false)
	if err != nil {
		t.Fatal(err)
	}
	publishes := func(want ...sink.Store) {
		t.Helper()
		for _, store := range []sink.Store{old, next} {
			err := commitlog.CheckRemap(ctx, store)
			if slices.Contains(want, store) != (err == nil) || err != nil && !errors.Is(err, commitlog.ErrRemapped) {
				t.Errorf("%s: %v", store.URL(), err)
			}
			if err := commitlog.CheckReshard(ctx, store); err != nil {
				t.Errorf("workers may not even read: %v", err)
			}
		}
	}
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func(from, into sink.Store, fromID string) {
		t.Helper()
		for range 2 {
			r := commitlog.Remap{From: from, FromID: fromID, Into: into, Shards: 2}
			complete, err := r.Begin(ctx)
			if err != nil || complete {
				t.Fatalf("begin: %t, %v", complete, err)
			}
		}
		publishes(from)
		r := commitlog.Remap{From: from, FromID: fromID, Into: into, Shards: 2, Groups: []string{"g"}}
		try(r.Leave(ctx))
		publishes()
		again := r
		again.Groups = nil
		try(again.Leave(ctx))
		if !slices.Equal(again.Groups, []string{"g"}) {
			t.Errorf("the groups are forgotten: %v", again.Groups)
		}
		try(sink.PutBytes(ctx, into, "shards/00001/published.json", []byte("{}")))
		try(r.Complete(ctx))
		try(r.Complete(ctx))
		publishes(into)
		if err := commitlog.CheckRemap(ctx, from); !strings.Contains(err.Error(), into.URL()) {
			t.Errorf("it does not say where to go: %v", err)
		}
		if at, err := commitlog.LoadPublished(ctx, into, 1); err != nil || at.Generation != 0 {
			t.Errorf("it goes by what it published before: %+v, %v", at, err)
		}
	}
	change(old, next, id.ID)
	if before, err := commitlog.Continues(ctx, next); err != nil || before != id.ID {
		t.Errorf("it continues %q, %v", before, err)
	}
	r := commitlog.Remap{From: old, FromID: id.ID, Into: next, Shards: 2}
	if complete, err := r.Begin(ctx); err != nil || !complete {
		t.Errorf("it is not known that it is complete: %t, %v", complete, err)
	}
	change(next, old, "8a41c07be25d9f3c") // the way back
	change(old, next, id.ID)
	other := &memstore.Store{Name: "other"}
	try(sink.PutBytes(ctx, other, "anything", []byte("x")))
	r.Into = other
	if _, err := r.Begin(ctx); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a store with something else: %v", err)
	}
	r.Into = old
	r.From = other
	if _, err := r.Begin(ctx); err == nil || !strings.Contains(err.Error(), "name that one with --from") {
		t.Errorf("a way back to another store: %v", err)
	}
}
