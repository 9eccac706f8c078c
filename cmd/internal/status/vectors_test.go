package status

import (
	"maps"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// The vectors of all shards are added up by name, as the newest manifests count them.
func TestVectorsAreCounted(t *testing.T) {
	store, id := &memstore.Store{}, commitlog.Identity{Name: "p", Shards: 3}
	for shard, vectors := range []map[string]int64{{"image": 2, "external": 5}, {"image": 3}} {
		m := &commitlog.Manifest{Format: commitlog.ManifestFormat, Shard: shard, Seq: 1, Writer: "w", Vectors: vectors}
		data, err := m.Encode(id.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := sink.PutBytes(t.Context(), store, commitlog.ManifestKey(shard, 1), data); err != nil {
			t.Fatal(err)
		}
	}
	st, err := Read(t.Context(), store, id)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int64{"image": 5, "external": 5}; !maps.Equal(st.Vectors, want) ||
		st.Shards[1].Vectors["image"] != 3 || st.Shards[2].Vectors != nil {
		t.Errorf("%v of the shards %+v, want %v", st.Vectors, st.Shards, want)
	}
}
