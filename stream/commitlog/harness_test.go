package commitlog

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
)

var errInjected = errors.New("injected failure")

func putManifest(t testing.TB, store sink.Store, m *Manifest) {
	t.Helper()
	data, err := json.Marshal(m)
	if err == nil {
		err = store.Create(context.Background(), ManifestKey(m.Shard, m.Seq), data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// commitWindow commits a window of shard 0, with one object for each part of its rows.
func commitWindow(t testing.TB, store sink.Store, seq int64, parts ...[]rows.Row) {
	t.Helper()
	m := &Manifest{Format: ManifestFormat, Seq: seq, Writer: "w", Next: map[string]int64{"nodes": seq},
		Created: time.Unix(seq, 0)}
	for n, part := range parts {
		key := RowKey(0, seq, "abc", int64(n))
		info := rowstest.Put(t, store, key, part)
		m.Objects = append(m.Objects, Object{Key: key, Rows: info.Rows, Bytes: info.Bytes, Checksum: info.Checksum})
		m.Rows += info.Rows
	}
	appendManifest(t, store, m)
}

// appendManifest creates a manifest of shard 0 after the one before it.
func appendManifest(t testing.TB, store sink.Store, m *Manifest) {
	t.Helper()
	var prev *Manifest
	if m.Seq > 1 {
		var err error
		if prev, err = ReadManifest(t.Context(), store, 0, m.Seq-1); err != nil {
			t.Fatal(err)
		}
	}
	m.Follow(prev)
	data, err := m.Encode("")
	if err == nil {
		err = store.Create(t.Context(), ManifestKey(0, m.Seq), data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rowObjects lists the row objects of shard 0.
func rowObjects(t testing.TB, store sink.Store) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for info, err := range store.List(t.Context(), rowsPrefix(0), "") {
		if err != nil {
			t.Fatal(err)
		}
		found[info.Key] = true
	}
	return found
}
