package commitlog

import (
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

func TestOrphansLeaveAloneWhatTheyDoNotKnow(t *testing.T) {
	store := &memstore.Store{}
	commitWindow(t, store, 1, []rows.Row{{NodeID: "a", Text: "text"}})
	named := rowObjects(t, store)
	for key, orphan := range map[string]bool{
		RowKey(0, 1, "abd", 0):                true,
		RowKey(0, 2, "abc", 1):                false, // not committed yet
		"shards/0/rows/1-abc-0.parquet":       false, // no key of ours
		"shards/0/rows/notes.txt":             false,
		RowKey(0, 1, "a-b", 0):                false,
		RowKey(1, 1, "abc", 0):                false, // another shard's
		"shards/0/state/anything.parquet":     false,
		rowsPrefix(0) + "compacted/1.parquet": false,
	} {
		if err := sink.PutBytes(t.Context(), store, key, []byte("x")); err != nil {
			t.Fatal(err)
		}
		removed, err := NewOrphans(store, 0).Remove(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if (removed.Objects == 1) != orphan || (removed.Bytes == 1) != orphan {
			t.Errorf("%s: removed %+v, want %v", key, removed, orphan)
		}
	}
	for key := range named {
		if !rowObjects(t, store)[key] {
			t.Errorf("%s is gone", key)
		}
	}
}
