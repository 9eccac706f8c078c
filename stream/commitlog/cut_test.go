package commitlog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
)

// A cut shows the graph as of its manifests, whatever was committed since, and logs of more windows
// than are read at once come out the same.
func TestCutShowsThePast(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, store := context.Background(), &memstore.Store{}
	const windows = 2*64 + 9 // rowsort reads 64 at once
	written, past, want := map[string]rows.Row{}, Cut{}, map[string]rows.Row{}
	for i := range windows {
		var batch []rows.Row
		for j := range 3 {
			id := fmt.Sprintf("n%03d", (i*7+j*28)%997)
			written[id] = rows.Row{NodeID: id, Text: fmt.Sprint(i), EventTime: int64(i)}
			batch = append(batch, written[id])
		}
		slices.SortFunc(batch, func(a, b rows.Row) int { return cmp.Compare(a.NodeID, b.NodeID) })
		commitWindow(t, store, int64(i+1), batch)
		if i == windows-20 {
			past, want = currentCut(t, store), maps.Clone(written)
		}
	}
	for _, test := range []struct {
		cut  Cut
		want map[string]rows.Row
	}{{currentCut(t, store), written}, {past, want}} {
		last, got := "", map[string]rows.Row{}
		for row, err := range test.cut.Newest(ctx, store, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if row.Seq != row.EventTime+1 || row.NodeID <= last { // window i is manifest i+1 here
				t.Errorf("node %s of window %d comes after %s, from manifest %d",
					row.NodeID, row.EventTime, last, row.Seq)
			}
			last, got[row.NodeID] = row.NodeID, row.Row
		}
		facts := map[string]rows.Row{}
		for row, err := range test.cut.Facts(ctx, store, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := facts[row.NodeID]; twice || row.Seq != row.EventTime+1 {
				t.Errorf("node %s of window %d came twice or from manifest %d", row.NodeID, row.EventTime, row.Seq)
			}
			facts[row.NodeID] = row.Row
		}
		if !sameRows(got, test.want) || !sameRows(facts, test.want) {
			t.Errorf("rows at %v are\n%v and\n%v, want\n%v", test.cut, got, facts, test.want)
		}
	}
	for range past.Newest(ctx, store, 0) {
		break // a reader may stop early
	}
	for range past.Facts(ctx, store, 0) {
		break
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

// sameRows compares what rows say of the graph.
func sameRows(got, want map[string]rows.Row) bool {
	return maps.EqualFunc(got, want, func(a, b rows.Row) bool {
		return reflect.DeepEqual(plain(a), plain(b))
	})
}

func plain(r rows.Row) rows.Row {
	return rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, Labels: append([]string{}, r.Labels...),
		EventTime: r.EventTime, Deleted: r.Deleted}
}

func currentCut(t *testing.T, store *memstore.Store) Cut {
	t.Helper()
	cut, err := CurrentCut(context.Background(), store, 1)
	if err != nil {
		t.Fatal(err)
	}
	return cut
}

func TestCutBeyondTheLogIsRefused(t *testing.T) {
	store := &memstore.Store{}
	commitWindow(t, store, 1, []rows.Row{{NodeID: "a"}})
	for _, err := range (Cut{0: 2}).Newest(context.Background(), store, 0) {
		if err == nil {
			t.Fatal("got a row of a cut that does not exist")
		}
		return
	}
	t.Fatal("got nothing, not even an error")
}

// A missing or exchanged object is damage, not an empty result.
func TestCutNoticesLostObjects(t *testing.T) {
	store := &memstore.Store{}
	commitWindow(t, store, 1, []rows.Row{{NodeID: "a"}, {NodeID: "b"}, {NodeID: "c"}})
	key := RowKey(0, 1, "abc", 0)
	for name, damage := range map[string]func() error{
		"exchanged": func() error {
			rowstest.Put(t, store, key, []rows.Row{{NodeID: "x"}})
			return nil
		},
		"lost": func() error { return store.Delete(context.Background(), key) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		var failure error
		for _, err := range currentCut(t, store).Newest(context.Background(), store, 0) {
			failure = err
		}
		if failure == nil {
			t.Errorf("%s: not noticed", name)
		}
		failure = nil
		for _, err := range currentCut(t, store).Facts(context.Background(), store, 0) {
			failure = err
		}
		if failure == nil {
			t.Errorf("%s: facts did not notice", name)
		}
	}
}

// The parts of a divided cut have each node's newest row between them, and a part has rows of its own manifests alone,
// also if the log was merged, and its parts removed, after it was divided.
func TestDividedCutHasAllRows(t *testing.T) {
	race.SkipComputing(t)
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 9))
		store := &memstore.Store{}
		head := 64*3 + rng.Int64N(100)
		writeSparseLog(t, store, rng, int(head), 40, 1)
		cut := Cut{0: head}
		each := 1 + rng.Int64N(80)
		layout, err := cut.Layout(t.Context(), store, 0)
		if err != nil {
			t.Fatal(err)
		}
		ends := layout.Divide(each)
		if !slices.IsSorted(ends) || len(ends) < 2 || ends[len(ends)-1] != head {
			t.Fatalf("seed %d: a log of %d manifests is divided at %v", seed, head, ends)
		}
		want := map[string]string{}
		for r, err := range cut.Facts(t.Context(), store, 0) {
			if err != nil {
				t.Fatal(err)
			}
			want[r.NodeID] = fmt.Sprint(r.Seq, r.Text, r.Deleted)
		}
		check := func(when string) {
			got, newest := map[string]string{}, map[string]int64{}
			after := int64(0)
			for _, to := range ends {
				for r, err := range cut.Logged(t.Context(), store, 0, after, to) {
					if err != nil {
						t.Fatalf("seed %d, %s: %v", seed, when, err)
					}
					if r.Seq <= after || r.Seq > to {
						t.Errorf("seed %d, %s: manifest %d is not after %d up to %d", seed, when, r.Seq, after, to)
					}
					if r.Seq > newest[r.NodeID] {
						got[r.NodeID], newest[r.NodeID] = fmt.Sprint(r.Seq, r.Text, r.Deleted), r.Seq
					}
				}
				after = to
			}
			if !maps.Equal(got, want) {
				t.Errorf("seed %d, %s: %d nodes differ from the cut's %d", seed, when, len(got), len(want))
			}
		}
		check("as written")
		now := time.Unix(1, 0)
		if _, err := testCompactor(store, now).Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("merged")
		if _, err := testCompactor(store, now.Add(2*time.Hour)).Remove(t.Context(), head); err != nil {
			t.Fatal(err)
		}
		check("parts removed")
	}
}
