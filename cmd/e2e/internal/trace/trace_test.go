package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	state "giantstream/stream/commitlog/checkpoint"
)

// change is one change of an object: what it holds now, or "" if it is gone.
type change struct{ key, data string }

func manifestOf(seq, next int64, objects ...string) change {
	var named []string
	for _, o := range objects {
		named = append(named, fmt.Sprintf(`{"key": %q}`, o))
	}
	return change{commitlog.ManifestKey(0, seq), fmt.Sprintf(
		`{"seq": %d, "writer": "w-aa", "next_offsets": {"nodes": %d}, "objects": [%s]}`,
		seq, next, strings.Join(named, ","))}
}

func rowsOf(seq int64) string { return commitlog.RowKey(0, seq, "aa", 0) }

func checkpointOf(number, seq int64, files ...string) change {
	var named []string
	for _, f := range files {
		named = append(named, fmt.Sprintf(`{"key": %q}`, f))
	}
	return change{fmt.Sprintf("shards/0/state/checkpoints/%020d.json", number),
		fmt.Sprintf(`{"seq": %d, "files": [%s]}`, seq, strings.Join(named, ","))}
}

func fileOf(number int64, session string) string {
	return state.FileKey(0, number, session, 0)
}

func leaseOf(number int64, session string) change {
	return change{fmt.Sprintf("lease/refresh/%020d.json", number), fmt.Sprintf(`{"session": %q}`, session)}
}

func cursorOf(generation, seq int64) change {
	return change{"shards/0/published.json", fmt.Sprintf(`{"generation": %d, "seq": %d}`, generation, seq)}
}

func gone(key string) change { return change{key: key} }

// life is a store in which everything has happened that may: an orphan and an old checkpoint are
// gone, the cursor was moved back, and the lease was taken over.
func life() []change {
	return []change{
		{rowsOf(1), "rows"}, manifestOf(1, 5, rowsOf(1)),
		{rowsOf(2), "rows"}, {commitlog.RowKey(0, 2, "bb", 0), "a zombie's"}, manifestOf(2, 7, rowsOf(2)),
		gone(commitlog.RowKey(0, 2, "bb", 0)), manifestOf(3, 7), manifestOf(4, 8),
		{fileOf(1, "aa"), "table"}, checkpointOf(1, 1, fileOf(1, "aa")),
		{fileOf(2, "aa"), "table"}, checkpointOf(2, 2, fileOf(1, "aa"), fileOf(2, "aa")),
		checkpointOf(3, 3, fileOf(2, "aa")), gone(checkpointOf(1, 0).key), checkpointOf(4, 4, fileOf(2, "aa")),
		gone(checkpointOf(2, 0).key), gone(fileOf(1, "aa")),
		cursorOf(1, 1), cursorOf(1, 2), cursorOf(1, 1), cursorOf(1, 4),
		leaseOf(1, "aa"), leaseOf(2, "bb"), gone(leaseOf(1, "").key),
	}
}

func observe(changes ...change) error {
	c := NewChecker()
	for _, change := range changes {
		var data []byte
		if change.data != "" {
			data = []byte(change.data)
		}
		c.Observe(change.key, data)
	}
	return c.Err()
}

// Every rule lets the ordinary life of a store pass, and notices its own violation.
func TestRules(t *testing.T) {
	if err := observe(life()...); err != nil {
		t.Fatalf("an ordinary life: %v", err)
	}
	for _, test := range []struct {
		rule string
		bad  []change
	}{
		{"ManifestsNeverChange", []change{manifestOf(2, 9)}},
		{"ManifestsNeverChange", []change{gone(commitlog.ManifestKey(0, 4))}},
		{"NoGap", []change{manifestOf(6, 9)}},
		{"OffsetsNeverDecrease", []change{manifestOf(5, 7)}},
		{"NamedObjectsExist", []change{manifestOf(5, 9, rowsOf(5))}},
		{"NamedObjectsExist", []change{manifestOf(5, 9, rowsOf(2))}},
		{"NamedObjectsExist", []change{gone(rowsOf(1))}},
		{"NamedObjectsExist", []change{{rowsOf(1), "other rows"}}},
		{"OnlyOrphansGo", []change{{rowsOf(5), "rows"}, gone(rowsOf(5))}},
		{"NextNumber", []change{checkpointOf(6, 4)}},
		{"NextNumber", []change{checkpointOf(4, 3)}},
		{"SeqAscends", []change{checkpointOf(5, 3)}},
		{"SeqAscends", []change{checkpointOf(5, 9)}},
		{"KeptAreWhole", []change{manifestOf(5, 9), checkpointOf(5, 5, fileOf(5, "aa"))}},
		{"KeptAreWhole", []change{gone(fileOf(2, "aa"))}},
		{"KeptAreWhole", []change{gone(checkpointOf(3, 0).key)}},
		{"KeptAreWhole", []change{{fileOf(4, "bb"), "table"}, gone(fileOf(4, "bb"))}},
		{"BlockIsComplete", []change{{blockKey(0, 1, 1), `{"to": 64}`}}},
		{"OnlySupersededGo", []change{{"shards/0/compacted/rows/1-00000000000000000001-aa-0.parquet", "rows"},
			gone("shards/0/compacted/rows/1-00000000000000000001-aa-0.parquet")}},
		{"CursorIsCovered", []change{cursorOf(1, 5)}},
		{"CursorReturns", []change{cursorOf(1, 3)}},
		{"HighestStays", []change{gone(leaseOf(2, "").key)}},
		{"OwnRecord", []change{leaseOf(2, "cc")}},
		{"Documents", []change{{commitlog.ManifestKey(0, 5), "{"}}},
	} {
		err := observe(append(life(), test.bad...)...)
		if err == nil || !strings.HasPrefix(err.Error(), test.rule+": ") {
			t.Errorf("%v: got %v, want a violation of %s", test.bad, err, test.rule)
		}
	}
}

// The rules know the objects that the program writes: 130 windows are committed and merged, and the
// parts removed.
func TestCompactionOfTheProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("writes hundreds of windows")
	}
	ctx := t.Context()
	for _, keep := range []int64{130, 64} {
		r := NewRecorder(&memstore.Store{})
		store := r.Store()
		for seq := int64(1); seq <= 130; seq++ {
			commitWindow(t, store, seq)
		}
		err := sink.PutBytes(ctx, store, "generations/000001/generation.json", []byte(`{"cut": {"0": 64}}`))
		if err != nil {
			t.Fatal(err)
		}
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: store, Grace: -1})
		if merged, err := c.Merge(ctx); err != nil || merged != 2 {
			t.Fatalf("%d blocks merged: %v", merged, err)
		}
		if removed, err := c.Remove(ctx, keep); err != nil || int64(removed.Objects) != keep/64*64 {
			t.Fatalf("up to %d: %d objects removed: %v", keep, removed.Objects, err)
		}
		err = r.Err()
		if keep == 64 && err != nil {
			t.Errorf("a removal that the cut allows: %v", err)
		}
		if keep == 130 && (err == nil || !strings.Contains(err.Error(), "NamedObjectsExist")) {
			t.Errorf("a removal beyond the cut: %v", err)
		}
	}
}

// commitWindow writes a row and the manifest that names it.
func commitWindow(t *testing.T, store sink.Store, seq int64) {
	t.Helper()
	row := func(yield func(rows.Row, error) bool) {
		yield(rows.Row{NodeID: fmt.Sprint("n", seq%3), Text: "text"}, nil)
	}
	objects, n, err := commitlog.WriteObjects(t.Context(), store, rows.Nodes, func() string { return rowsOf(seq) }, 0,
		rows.WriteOptions{}, row)
	if err != nil {
		t.Fatal(err)
	}
	m := &commitlog.Manifest{Format: commitlog.ManifestFormat, Seq: seq, Writer: "w-aa",
		Next: map[string]int64{"nodes": seq}, Objects: objects, Rows: n}
	head, err := commitlog.Head(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.Follow(head)
	data, err := m.Encode("")
	if err == nil {
		err = store.Create(t.Context(), commitlog.ManifestKey(0, seq), data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lossy is a store that does what it is asked, and says that it failed.
type lossy struct{ sink.Store }

func (l lossy) Create(ctx context.Context, key string, data []byte) error {
	return errors.Join(errors.New("connection reset"), l.Store.Create(ctx, key, data))
}

// What a call has done is seen, whatever its answer, and nothing is seen twice.
func TestAmbiguousAnswers(t *testing.T) {
	r := NewRecorder(lossy{&memstore.Store{}})
	m := manifestOf(1, 5)
	for range 2 {
		if err := r.Store().Create(t.Context(), m.key, []byte(m.data)); err == nil {
			t.Fatal("the answer was not lost")
		}
	}
	if r.Changes() != 1 || r.Err() != nil {
		t.Errorf("%d changes, %v", r.Changes(), r.Err())
	}
}
