package logview

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/answer"
)

// What the stretches say, one after the other, is what the windows say, whether their rows are merged or not, and the
// attributes alone are those of the rows.
func TestStretchesSayWhatWindowsSay(t *testing.T) {
	const windows = 70
	store := &memstore.Store{}
	r := rand.New(rand.NewPCG(1, 1))
	want := map[string]string{} // text and attributes
	for seq := range int64(windows) {
		var nodes []rows.Row
		var alone []rows.Attributes
		for n := range 6 {
			id, attributes := fmt.Sprint("n", n), fmt.Sprintf(`{"price":%d}`, r.IntN(1000))
			text, live := strings.CutSuffix(want[id], "}")
			text, _, _ = strings.Cut(text, "{")
			switch {
			case r.IntN(3) > 0:
			case live && r.IntN(2) == 0:
				alone = append(alone, rows.Attributes{NodeID: id, Attributes: attributes})
				want[id] = text + attributes
			case live && r.IntN(3) == 0:
				nodes = append(nodes, rows.Row{NodeID: id, Deleted: true})
				delete(want, id)
			default:
				nodes = append(nodes, rows.Row{NodeID: id, Text: fmt.Sprint("text ", seq), Attributes: attributes})
				want[id] = fmt.Sprint("text ", seq) + attributes
			}
		}
		commit(t, store, seq+1, nodes, nil, alone...)
	}
	for _, merged := range []bool{false, true} {
		if merged {
			c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: store})
			if n, err := c.Merge(t.Context()); err != nil || n == 0 {
				t.Fatalf("merged %d blocks, %v", n, err)
			}
		}
		tail := Tail{Store: store}
		got, stretches, to := map[string]string{}, 0, int64(0)
		for s, err := range tail.Stretches(t.Context(), 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			stretches, to = stretches+1, s.To
			apply(t, s, func(r answer.Row) {
				text, _, _ := strings.Cut(got[r.NodeID], "{")
				if !r.AttributesAlone {
					text = r.Text
				}
				if got[r.NodeID] = text + r.Attributes; r.Deleted {
					delete(got, r.NodeID)
				}
			})
		}
		if !maps.Equal(got, want) || to != windows || (stretches == windows) == merged {
			t.Errorf("merged %t: %d stretches up to %d say %v, want %v", merged, stretches, to, got, want)
		}
		for s, err := range tail.Attributes(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			apply(t, s, func(r answer.Row) { got[r.NodeID] = r.Attributes })
		}
		for id, w := range want {
			if !strings.HasSuffix(w, got[id]) || got[id] == "" {
				t.Errorf("merged %t: attributes alone of %s are %s, want %s", merged, id, got[id], w)
			}
		}
	}
}

// The orders of all stretches, one after the other, that count by the latest horizon are those of the cut, whether rows
// are merged or not.
func TestStretchesSayWhichOrdersCount(t *testing.T) {
	const windows, day = 70, int64(24 * time.Hour / time.Microsecond)
	store := &memstore.Store{}
	r := rand.New(rand.NewPCG(1, 2))
	for seq := int64(1); seq <= windows; seq++ {
		var orders []rows.Order
		for id := range 9 {
			o := rows.Order{OrderID: fmt.Sprintf("o%d", id*10+r.IntN(10)), Time: seq * day, EventTime: seq * day}
			for item := range 4 {
				if r.IntN(3) > 0 {
					o.Items, o.Quantities = append(o.Items, fmt.Sprint("i", item)), append(o.Quantities, 1)
				}
			}
			if o.Deleted = len(o.Items) == 0; r.IntN(3) == 0 && !o.Deleted {
				times := o.LineTimes()
				times[0] -= day * int64(r.IntN(20))
				o.SetLineTimes(times)
			}
			orders = append(orders, o)
		}
		m := &commitlog.Manifest{Seq: seq, OrderClock: seq * day, OrderHorizon: rows.Horizon(max(0, seq-30) * day)}
		commitWith(t, store, m, nil, orders)
	}
	cut := commitlog.Cut{0: windows}
	horizon, err := cut.OrderHorizon(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for o, err := range cut.Orders(t.Context(), store, 0, horizon) {
		if err != nil {
			t.Fatal(err)
		}
		want[strings.Clone(o.OrderID)] = fmt.Sprint(o.Items, o.LineTimes())
	}
	for _, merged := range []bool{false, true} {
		if merged {
			c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: store})
			if n, err := c.Merge(t.Context()); err != nil || n == 0 {
				t.Fatalf("merged %d blocks, %v", n, err)
			}
		}
		got, latest := map[string]string{}, rows.Horizon(0)
		held := map[string]rows.Order{}
		for s, err := range (Tail{Store: store}).Stretches(t.Context(), 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			latest = max(latest, s.Horizon)
			for o, err := range s.Orders {
				if err != nil {
					t.Fatal(err)
				}
				o.OrderID = strings.Clone(o.OrderID)
				held[o.OrderID] = o
			}
		}
		for id, o := range held {
			if o.Expire(latest); !o.Deleted {
				got[id] = fmt.Sprint(o.Items, o.LineTimes())
			}
		}
		if !maps.Equal(got, want) || latest != horizon || len(want) == 0 {
			t.Errorf("merged %t: by %d, orders %v, want %v", merged, latest, got, want)
		}
	}
}

// apply calls f with the rows of a stretch, each of another node.
func apply(t *testing.T, s answer.Stretch, f func(answer.Row)) {
	t.Helper()
	var ids []string
	for r, err := range s.Rows {
		if err != nil {
			t.Fatal(err)
		}
		f(r)
		ids = append(ids, strings.Clone(r.NodeID))
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("up to %d: nodes %v", s.To, ids)
	}
}
