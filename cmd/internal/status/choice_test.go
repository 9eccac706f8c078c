package status

import (
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// A choice that cannot be read is said, and hides nothing else.
func TestDamagedChoiceIsTold(t *testing.T) {
	store := &memstore.Store{}
	id := commitlog.Identity{Name: "catalog", Shards: 2}
	if err := commitlog.CreateIdentity(t.Context(), store, id); err != nil {
		t.Fatal(err)
	}
	if err := sink.PutBytes(t.Context(), store, "generations/choice.json", []byte("noise")); err != nil {
		t.Fatal(err)
	}
	st, err := Read(t.Context(), store, id)
	if err != nil || !strings.Contains(st.Undecided, "generations/choice.json") || len(st.Shards) != 2 {
		t.Errorf("%+v, %v", st, err)
	}
}
