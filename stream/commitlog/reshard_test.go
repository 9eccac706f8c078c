package commitlog_test

import (
	"context"
	"slices"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// The embedded broker's log often lies below the store, in local/, and the pipeline goes on with it after the change.
func TestReshardRemovesObjectsOnly(t *testing.T) {
	ctx := t.Context()
	old, next := &memstore.Store{Name: "old"}, &memstore.Store{Name: "next"}
	put := func(s sink.Store, keys ...string) {
		t.Helper()
		for _, key := range keys {
			if err := sink.PutBytes(ctx, s, key, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(old, "local/broker/topics/nodes-0.log", "states/0/CURRENT", "shards/00000/rows/1.parquet", "drift.json")
	put(next, "local/broker/topics/nodes-0.log")
	r := &commitlog.Reshard{From: old.URL(), FromID: "a", Into: next.URL(), Shards: 2}
	begin := func() {
		t.Helper()
		if _, err := r.BeginAttempt(ctx, next); err != nil {
			t.Fatal(err)
		}
		if err := r.CloseFor(ctx, old); err != nil {
			t.Fatal(err)
		}
	}
	begin()
	if err := commitlog.AbortReshard(ctx, old, next); err != nil {
		t.Fatal(err)
	}
	wantKeys(ctx, t, next, "local/broker/topics/nodes-0.log")

	begin()
	if err := r.Complete(ctx, next); err != nil {
		t.Fatal(err)
	}
	removed, kept, err := commitlog.RemoveLeft(ctx, old, next, []string{"states/"})
	if err != nil || removed != 3 || kept != 2 {
		t.Errorf("removed %d and kept %d: %v", removed, kept, err)
	}
	wantKeys(ctx, t, old, "local/broker/topics/nodes-0.log", "states/0/CURRENT")
}

func wantKeys(ctx context.Context, t *testing.T, s sink.Store, want ...string) {
	t.Helper()
	var have []string
	for info, err := range s.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, info.Key)
	}
	if !slices.Equal(have, want) {
		t.Errorf("%s holds %q, want %q", s.URL(), have, want)
	}
}
