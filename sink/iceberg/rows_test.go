package iceberg_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	iceberggo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink/iceberg"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/vectordbtest"
	"giantstream/stream/rowtable"
	"giantstream/stream/rowtable/rowtabletest"
)

// factsOf returns the rows of main, and "" for the manifests of one that is not served.
func factsOf(t *testing.T, meta table.Metadata, read *iceberg.Facts) (map[string]rows.Committed, string) {
	t.Helper()
	s := meta.CurrentSnapshot()
	found, err := read.Read(t.Context(), meta, s.SnapshotID)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]rows.Committed{}
	for _, r := range found {
		if _, twice := out[r.NodeID]; twice {
			t.Fatalf("snapshot %d has two rows of %s", s.SnapshotID, r.NodeID)
		}
		out[r.NodeID] = r
	}
	return out, s.Summary.Properties["giantstream.manifests"]
}

// TestRows: a follower of the commit log and the table, through kills between any two requests, lost and late answers,
// processes that live on after others have taken over, maintenance by other programs, a log that is compacted and whose
// manifests are folded, and tables that are filled again. Every snapshot to which main has ever pointed shows the cut
// of the log that its summary names. In the end main points to the newest cut.
func TestRows(t *testing.T) {
	for seed := range uint64(vectordbtest.Seeds()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testRows(t, seed)
		})
	}
}

func testRows(t *testing.T, seed uint64) {
	w := newWorld(seed, 0.004)
	p := rowtabletest.New(t, &memstore.Store{}, w.rnd, 1+w.rnd.IntN(3))
	open := func(again bool) (*rowtable.Follower, error) {
		f := rowtable.New(rowtable.Options{Store: p.Store, Table: iceberg.NewRows(w.options()), Again: again,
			Pause: time.Microsecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		return f, f.Open(t.Context())
	}
	var zombies []*rowtable.Follower
	for range 25 {
		for range w.rnd.IntN(20) {
			p.Commit(t, w.rnd.IntN(p.Shards))
		}
		if w.rnd.IntN(6) == 0 {
			p.Compact(t)
		}
		if w.rnd.IntN(6) == 0 {
			p.Fold(t)
		}
		var f *rowtable.Follower
		var err error
		if n := len(zombies); n == 0 || w.rnd.IntN(2) == 0 {
			if f, err = open(w.rnd.IntN(8) == 0); err == nil {
				zombies = append(zombies, f)
			}
		} else {
			f = zombies[w.rnd.IntN(n)]
		}
		if err == nil {
			err = f.Run(t.Context(), true)
		}
		if err != nil && !errors.Is(err, vectordbtest.ErrKilled) && !errors.Is(err, vectordb.ErrTakenOver) {
			t.Fatal(err)
		}
		if errors.Is(err, vectordbtest.ErrKilled) {
			zombies = slices.DeleteFunc(zombies, func(g *rowtable.Follower) bool { return g == f })
		}
	}
	w.calm = true
	f, err := open(false)
	if err == nil {
		err = f.Run(t.Context(), true)
	}
	if err != nil {
		t.Fatal(err)
	}
	read := &iceberg.Facts{Store: w.store}
	cuts := 0
	for meta := range w.catalog.mains {
		got, manifests := factsOf(t, meta, read)
		if manifests == "" {
			continue
		}
		cuts++
		if diff := rowtabletest.Differ(got, p.RowsAt(t, manifests)); diff != "" {
			t.Fatalf("a snapshot with the manifests %s does not show that cut: %s", manifests, diff)
		}
	}
	got, manifests := factsOf(t, w.catalog.meta, read)
	if diff := rowtabletest.Differ(got, p.RowsAt(t, p.Cut())); diff != "" {
		t.Fatalf("main has the manifests %q, the log ends with %q: %s", manifests, p.Cut(), diff)
	}
	t.Logf("%d snapshots of main were checked, %d manifests folded", cuts, p.Folded)
	if cuts == 0 {
		t.Fatal("no snapshot of main was checked")
	}
}

// TestRowsGetColumns: a table of an earlier release gets the columns that it lacks, and rows with them; one to which
// somebody else has added columns is refused.
func TestRowsGetColumns(t *testing.T) {
	w := newWorld(1, 0)
	w.calm = true
	o := w.options()
	all := iceberg.RowSchema()
	earlier := iceberggo.NewSchemaWithIdentifiers(0, all.IdentifierFieldIDs, all.Fields()[:7]...)
	if _, err := w.catalog.CreateTable(t.Context(), o.Table, earlier,
		catalog.WithProperties(iceberggo.Properties{"format-version": "2"})); err != nil {
		t.Fatal(err)
	}
	p := rowtabletest.New(t, &memstore.Store{}, w.rnd, 1)
	for range 5 {
		p.Commit(t, 0)
	}
	follow := func() error {
		f := rowtable.New(rowtable.Options{Store: p.Store, Table: iceberg.NewRows(w.options()), Pause: time.Microsecond,
			Log: slog.New(slog.DiscardHandler)})
		return errors.Join(f.Open(t.Context()), f.Run(t.Context(), true))
	}
	for range 2 { // the second time there is nothing to add
		if err := follow(); err != nil {
			t.Fatal(err)
		}
		p.Commit(t, 0)
	}
	if err := follow(); err != nil {
		t.Fatal(err)
	}
	got, _ := factsOf(t, w.catalog.meta, &iceberg.Facts{Store: w.store})
	if diff := rowtabletest.Differ(got, p.RowsAt(t, p.Cut())); diff != "" {
		t.Error(diff)
	}
	if now := w.catalog.meta.CurrentSchema(); now.NumFields() != all.NumFields() || now.ID != 1 {
		t.Errorf("the table ends with schema %d of %d columns", now.ID, now.NumFields())
	}
	w = newWorld(2, 0)
	w.calm = true
	other := append(earlier.Fields(), iceberggo.NestedField{ID: 9, Name: "mine", Type: iceberggo.PrimitiveTypes.String})
	if _, err := w.catalog.CreateTable(t.Context(), o.Table,
		iceberggo.NewSchemaWithIdentifiers(0, all.IdentifierFieldIDs, other...),
		catalog.WithProperties(iceberggo.Properties{"format-version": "2"})); err != nil {
		t.Fatal(err)
	}
	if _, err := iceberg.NewRows(w.options()).Open(t.Context(), "shop", "a", "", 1, false); !errors.Is(err,
		vectordb.ErrRefused) {
		t.Errorf("a table with a column of somebody else: %v", err)
	}
}

// TestRowsHaveAnOwner: a table with the rows of a pipeline is filled by another one only when somebody asks for it, or
// when that is the same pipeline with other shards.
func TestRowsHaveAnOwner(t *testing.T) {
	w := newWorld(1, 0)
	w.calm = true
	for _, tt := range []struct {
		id, continues string
		again, taken  bool
	}{{"a", "", false, true}, {"a", "", false, true}, {"b", "", false, false}, {"b", "c", false, false},
		{"b", "", true, true}, {"a", "", false, false}, {"c", "b", false, true}, {"b", "", false, false}} {
		_, err := iceberg.NewRows(w.options()).Open(t.Context(), "shop", tt.id, tt.continues, 1, tt.again)
		if tt.taken && err != nil || !tt.taken && !errors.Is(err, vectordb.ErrOwner) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
