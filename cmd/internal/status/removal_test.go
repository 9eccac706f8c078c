package status

import (
	"strings"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// A damaged note of what was removed does not keep people from the status.
func TestRemovalOfADamagedLog(t *testing.T) {
	store := &memstore.Store{}
	for _, key := range []string{"shards/0/removed.json", "shards/1/boundary.json"} {
		if err := sink.PutBytes(t.Context(), store, key, []byte("{")); err != nil {
			t.Fatal(err)
		}
	}
	st := &Status{Shards: []Shard{{Shard: 0, Seq: 5}, {Shard: 1, Seq: 5}}}
	cfg := config.Default()
	if err := st.readRemoval(t.Context(), store, cfg.Compaction); err != nil || st.Removal.Waits == "" {
		t.Errorf("%v, %v", st.Removal, err)
	}
}

// What is removed next is told by its time, and by what it waits for besides.
func TestRemoval(t *testing.T) {
	soon, later := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	at := func(t time.Time) string { return t.UTC().Format(time.DateTime) }
	type shard struct {
		next commitlog.NextRemoval
		cut  int64
	}
	rows := func(from time.Time) commitlog.NextRemoval { return commitlog.NextRemoval{Rows: from, Waits: 64} }
	for name, c := range map[string]struct {
		shards []shard
		want   string
	}{
		"the first shard to come": {[]shard{{rows(later), 90}, {rows(soon), 64}}, "within 1h0m0s after " + at(soon)},
		"manifests before rows":   {[]shard{{commitlog.NextRemoval{Rows: later, Manifests: soon}, 90}}, at(soon)},
		"due": {[]shard{{rows(time.Now().Add(-time.Minute)), 90}},
			"removed within 1h0m0s: they may go since"},
		"no generation": {[]shard{{rows(soon), 0}}, "not before: there is no generation"},
		"a generation needs them": {[]shard{{rows(soon), 63}},
			"at manifest 63 of shard 0, and the files go once all are beyond 64"},
		"only one of them waits":     {[]shard{{rows(soon), 63}, {rows(later), 64}}, "after " + at(later)},
		"the other one waits":        {[]shard{{rows(later), 64}, {rows(soon), 63}}, "after " + at(later)},
		"a shard with few manifests": {[]shard{{commitlog.NextRemoval{}, 5}, {rows(soon), 64}}, "after " + at(soon)},
	} {
		var r Removal
		for i, s := range c.shards {
			r.add(s.next, i, s.cut)
		}
		if !strings.Contains(r.String(), c.want) {
			t.Errorf("%s: %s, want %s", name, r.String(), c.want)
		}
	}
}
