package sources

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// remembers returns the store of a pipeline that copies topic "nodes" and has lost 20 of its records.
func remembers(t *testing.T) (store *memstore.Store, lost commitlog.ShardLost) {
	t.Helper()
	store = &memstore.Store{}
	if _, err := Remember(t.Context(), store, "nodes", Topic{ID: "0b6f", Epoch: 2}); err != nil {
		t.Fatal(err)
	}
	lost = commitlog.ShardLost{Shard: 3, Lost: commitlog.Lost{Topic: "nodes", From: 100, To: 120, Offsets: 20,
		Noticed: time.Now().UTC()}}
	if err := NoteLost(t.Context(), store, lost); err != nil {
		t.Fatal(err)
	}
	all, err := Lost(t.Context(), store, "nodes")
	if err != nil || len(all) != 1 {
		t.Fatalf("lost %v, %v; want one loss", all, err)
	}
	if err := (Copied{Into: "nodes.keyed", Epoch: 2, Next: 150}).Put(t.Context(), store, "nodes", 3); err != nil {
		t.Fatal(err)
	}
	return store, all[0]
}

func auditOf(t *testing.T, store sink.Store, repair bool) *audit.Audit {
	t.Helper()
	a, err := audit.New(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	a.May = func(audit.Finding) bool { return repair }
	if err := Audit(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	a.Orphans()
	return a
}

// No flipped bit of what the store remembers of a source topic is read as something else, and the
// errors say what to do.
func TestFlippedBitsOfSourcesAreNoticed(t *testing.T) {
	store, lost := remembers(t)
	if a := auditOf(t, store, false); len(a.Findings) > 0 || a.Objects != 3 || a.Unsealed > 0 {
		t.Fatalf("a whole store: %+v", a)
	}
	for _, key := range []string{topicKey("nodes"), lostKey(lost), copiedKey("nodes", 3)} {
		good, err := sink.ReadAll(t.Context(), store, key)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * len(good) {
			bad := bytes.Clone(good)
			bad[bit/8] ^= 1 << (bit % 8)
			if err := sink.PutBytes(t.Context(), store, key, bad); err != nil {
				t.Fatal(err)
			}
			if a := auditOf(t, store, false); a.Damage() != 1 || a.Findings[0].Object != key {
				t.Errorf("bit %d of byte %d of %s: findings %+v", bit%8, bit/8, key, a.Findings)
			}
			_, err := Remember(t.Context(), store, "nodes", Topic{})
			if key == topicKey("nodes") && (!errors.Is(err, sink.ErrDamaged) || !strings.Contains(err.Error(), "backup")) {
				t.Errorf("bit %d of byte %d of %s: read with %v", bit%8, bit/8, key, err)
			}
			all, err := Lost(t.Context(), store, "nodes")
			if err != nil || len(all) != 1 || all[0].From != 100 || all[0].To != 120 || all[0].Shard != 3 {
				t.Errorf("bit %d of byte %d of %s: lost %v, %v", bit%8, bit/8, key, all, err)
			}
			c, ok, err := ReadCopied(t.Context(), store, "nodes", 3)
			if key == copiedKey("nodes", 3) && (ok || !errors.Is(err, sink.ErrDamaged)) {
				t.Errorf("bit %d of byte %d of %s: copied %+v, %v", bit%8, bit/8, key, c, err)
			}
		}
		if err := sink.PutBytes(t.Context(), store, key, good); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedNotesOfLossesAreRepaired(t *testing.T) {
	store, lost := remembers(t)
	for _, bad := range []string{"", "noise", `{"shard": 4, "topic": "nodes", "from": 100, "to": 120}`} {
		if err := sink.PutBytes(t.Context(), store, lostKey(lost), []byte(bad)); err != nil {
			t.Fatal(err)
		}
		if a := auditOf(t, store, false); a.Damage() != 1 || !strings.Contains(a.Findings[0].Do, "--repair") {
			t.Errorf("%q: findings %+v", bad, a.Findings)
		}
		if a := auditOf(t, store, true); a.Damage() > 0 || len(a.Findings) != 1 {
			t.Errorf("%q: not repaired: %+v", bad, a.Findings)
		}
		if a := auditOf(t, store, false); len(a.Findings) > 0 {
			t.Errorf("%q: after the repair: %+v", bad, a.Findings)
		}
	}
	if err := sink.PutBytes(t.Context(), store, "sources/nodes/lost/3-100-120.json", nil); err != nil {
		t.Fatal(err)
	}
	if a := auditOf(t, store, true); len(a.Findings) != 1 || a.Findings[0].Kind != audit.Orphan {
		t.Errorf("an object of another name: %+v", a.Findings)
	}
}

// A damaged note of how far a partition is copied is removed: the copier writes it again.
func TestDamagedNotesOfCopiesAreRepaired(t *testing.T) {
	store, _ := remembers(t)
	if err := sink.PutBytes(t.Context(), store, copiedKey("nodes", 3), []byte("noise")); err != nil {
		t.Fatal(err)
	}
	if a := auditOf(t, store, false); a.Damage() != 1 {
		t.Errorf("findings %+v", a.Findings)
	}
	if a := auditOf(t, store, true); a.Damage() > 0 {
		t.Errorf("not repaired: %+v", a.Findings)
	}
	if c, ok, err := ReadCopied(t.Context(), store, "nodes", 3); ok || err != nil {
		t.Errorf("after the repair: %+v, %v", c, err)
	}
}

// Older releases have written these objects without a checksum.
func TestSourcesWithoutChecksumAreRead(t *testing.T) {
	store := &memstore.Store{}
	lost := commitlog.ShardLost{Shard: 3, Lost: commitlog.Lost{Topic: "nodes", From: 100, To: 120, Offsets: 20,
		Noticed: time.Unix(0, 0).UTC()}}
	note, err := json.Marshal(lost)
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range map[string][]byte{topicKey("nodes"): []byte(`{"id":"0b6f","epoch":2}`), lostKey(lost): note} {
		if err := sink.PutBytes(t.Context(), store, key, data); err != nil {
			t.Fatal(err)
		}
	}
	was, err := Remember(t.Context(), store, "nodes", Topic{ID: "another"})
	if err != nil || was != (Topic{ID: "0b6f", Epoch: 2}) {
		t.Errorf("topic %+v, %v", was, err)
	}
	if all, err := Lost(t.Context(), store, "nodes"); err != nil || len(all) != 1 || all[0] != lost {
		t.Errorf("lost %v, %v; want %v", all, err, lost)
	}
	if a := auditOf(t, store, false); len(a.Findings) > 0 || a.Unsealed != 2 {
		t.Errorf("findings %+v, %d without a checksum", a.Findings, a.Unsealed)
	}
}
