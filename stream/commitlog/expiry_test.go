package commitlog

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

const day = int64(24 * time.Hour / time.Microsecond)

// keptDays is how long the orders of writeOrders count.
const keptDays = 20

// writeOrders commits windows of shard 0, each with an order of its day, and with one that is corrected again and
// again: to the day of the window, and every third time to a day long ago.
func writeOrders(t *testing.T, store sink.Store, windows int64) {
	t.Helper()
	for seq := int64(1); seq <= windows; seq++ {
		corrected := seq
		if seq%3 == 0 {
			corrected = 1
		}
		order := func(id string, placed int64) rows.Order {
			return rows.Order{OrderID: id, Time: placed * day, EventTime: seq * day, Items: []string{"x"},
				Quantities: []float32{1}, Customer: "c"}
		}
		objects, _, err := WriteObjects(t.Context(), store, rows.Orders, func() string { return RowKey(0, seq, "abc", 0) },
			0, rows.WriteOptions{}, each([]rows.Order{order("corrected", corrected), order(fmt.Sprintf("o%03d", seq), seq)}))
		if err != nil {
			t.Fatal(err)
		}
		appendManifest(t, store, &Manifest{Format: ManifestFormat, Seq: seq, Writer: "w", Objects: objects,
			Next: map[string]int64{"nodes": seq}, Created: time.Unix(seq, 0), OrderClock: seq * day,
			OrderHorizon: rows.HorizonAt(seq*day, keptDays*24*time.Hour)})
	}
}

// ordersAt names the orders that count at a cut.
func ordersAt(t *testing.T, store sink.Store, seq int64) (string, error) {
	t.Helper()
	cut := Cut{0: seq}
	h, err := cut.OrderHorizon(t.Context(), store)
	if err != nil {
		return "", err
	}
	all := []string{fmt.Sprint(int64(h) / day)}
	for row, err := range cut.NewestOrders(t.Context(), store, 0, h) {
		if err != nil {
			return "", err
		}
		all = append(all, row.OrderID)
	}
	return strings.Join(all, " "), nil
}

// rowsOfOrders counts the rows of orders in merged blocks and in windows, with items and without.
func rowsOfOrders(t *testing.T, store sink.Store, from, to int64) (whole, empty int) {
	t.Helper()
	for s, err := range Segments(t.Context(), store, 0, from-1, to) {
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range rowsOf(t.Context(), store, rows.Orders, s, rows.ReadOptions{}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case len(row.row.Items) > 0:
				whole++
			case row.row.Customer != "" || !row.row.Deleted:
				t.Errorf("what is left of an order is %+v", row.row)
			default:
				empty++
			}
		}
	}
	return whole, empty
}

// cuts are manifests at which a log is read: every fifth, and those around the ends of blocks.
func cuts(windows int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for seq := int64(1); seq <= windows; seq++ {
			past := seq % compactionFanIn
			if (seq%5 == 0 || past < 2 || past > compactionFanIn-3 || seq == windows) && !yield(seq) {
				return
			}
		}
	}
}

// TestMergedOrdersExpire: cuts show the orders that count, before and after blocks are merged that leave out the rest.
func TestMergedOrdersExpire(t *testing.T) {
	race.SkipComputing(t)
	store := &memstore.Store{}
	const windows = 2*compactionFanIn + 10
	writeOrders(t, store, windows)
	want := map[int64]string{}
	for seq := range cuts(windows) {
		var all []string
		horizon := max(0, seq-keptDays)
		if all = append(all, fmt.Sprint(horizon)); seq%3 != 0 || horizon == 0 {
			all = append(all, "corrected")
		}
		for day := horizon + 1; day <= seq; day++ {
			all = append(all, fmt.Sprintf("o%03d", day))
		}
		want[seq] = strings.Join(all, " ")
	}
	c := NewCompactor(CompactorOptions{Store: store})
	for _, what := range []string{"before", "after"} {
		for seq := range cuts(windows) {
			if got, err := ordersAt(t, store, seq); err != nil || got != want[seq] {
				t.Fatalf("%s: at %d %s count, %v; want %s", what, seq, got, err, want[seq])
			}
		}
		if n, err := c.Merge(t.Context()); err != nil || n > 2 {
			t.Fatalf("%d merged: %v", n, err)
		}
	}
	// Of the first block, whose horizon is day 44, the orders of the 20 days from 45 on are left, with the corrected
	// one. That of day 44 says that it has expired.
	if whole, empty := rowsOfOrders(t, store, 1, compactionFanIn); whole != keptDays+1 || empty != 1 {
		t.Errorf("the merged block has %d orders, and %d without items", whole, empty)
	}
}

// TestFoldedOrdersExpire: cuts in blocks that are folded, and not merged, count from the same day as before.
func TestFoldedOrdersExpire(t *testing.T) {
	race.SkipComputing(t)
	store := &memstore.Store{}
	const windows = 2*compactionFanIn + 10
	writeOrders(t, store, windows)
	want := map[int64]string{}
	for seq := range cuts(windows) {
		all, err := ordersAt(t, store, seq)
		if err != nil {
			t.Fatal(err)
		}
		want[seq] = all
	}
	putCheckpoint(t, store, 1, windows)
	c := testCompactor(store, time.Unix(1_000_000, 0))
	c.opts.maxRows = 1
	if _, err := c.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	removed, err := c.Fold(t.Context(), FoldOptions{Keep: windows})
	if err != nil || removed.Objects != 2*compactionFanIn {
		t.Fatalf("%d manifests removed: %v", removed.Objects, err)
	}
	for seq := range cuts(windows) {
		if got, err := ordersAt(t, store, seq); err != nil || got != want[seq] {
			t.Fatalf("at %d %s count, %v; want %s", seq, got, err, want[seq])
		}
	}
}

// TestTheLatestHorizonOfACutCounts: that of any shard, for all of them.
func TestTheLatestHorizonOfACutCounts(t *testing.T) {
	store := &memstore.Store{}
	for shard, h := range []rows.Horizon{3, 7, 0} {
		m := &Manifest{Format: ManifestFormat, Shard: shard, Seq: 1, Writer: "w", OrderClock: 10, OrderHorizon: h}
		m.Follow(nil)
		data, err := m.Encode("")
		if err == nil {
			err = store.Create(t.Context(), ManifestKey(shard, 1), data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		cut  Cut
		want rows.Horizon
	}{{Cut{0: 1, 1: 1, 2: 1, 3: 0}, 7}, {Cut{0: 1, 1: 0, 2: 1}, 3}, {Cut{2: 1}, 0}, {Cut{}, 0}} {
		if h, err := c.cut.OrderHorizon(t.Context(), store); err != nil || h != c.want {
			t.Errorf("the horizon of %v is %d, %v, want %d", c.cut, h, err, c.want)
		}
	}
	if _, err := (Cut{0: 2}).OrderHorizon(t.Context(), store); !errors.Is(err, ErrDamaged) {
		t.Errorf("a manifest that is not there: %v", err)
	}
	m := &Manifest{Format: ManifestFormat, Seq: 1, Writer: "w", OrderClock: 10, OrderHorizon: 10}
	if _, err := m.Encode(""); err == nil || !strings.Contains(err.Error(), "the order clock 10, and the horizon 10") {
		t.Errorf("a horizon that its own clock has passed: %v", err)
	}
}
