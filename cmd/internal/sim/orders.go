package sim

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// ordersOf returns what a set of mutations states of orders.
func ordersOf(all []mutation.Mutation) *oracle.Graph {
	g := oracle.New(false)
	for _, m := range all {
		if m.Order != nil {
			g.Add(m)
		}
	}
	return g
}

// counting returns what counts of committed rows after a horizon.
func counting(committed iter.Seq[rows.Order], h rows.Horizon) (out []rows.Order) {
	for row := range committed {
		if row.Expire(h); h == 0 || !row.Deleted {
			out = append(out, row)
		}
	}
	return out
}

// checkClock compares the clock of a shard's orders, and what it says counts no more, with what is stated.
func (v *watch) checkClock(m *commitlog.Manifest, said *oracle.Graph) {
	keep := v.w.plan.keep
	if m.OrderClock != said.OrderClock() || m.OrderHorizon != said.OrderHorizon(keep) {
		v.w.fail("shard %d at manifest %d has the order clock %d and the horizon %d, want %d and %d, %v before",
			m.Shard, m.Seq, m.OrderClock, m.OrderHorizon, said.OrderClock(), said.OrderHorizon(keep), keep)
	}
}

// differentOrders describes the first order whose rows differ; "" if there is none. Those wanted are sorted by key.
func differentOrders(got, want []rows.Order) string {
	slices.SortFunc(got, func(a, b rows.Order) int { return strings.Compare(rows.Orders.Key(&a), rows.Orders.Key(&b)) })
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("order %s has no row, want %+v", want[i].OrderID, want[i])
		case i >= len(want):
			return fmt.Sprintf("order %s has a row and should have none: %+v", got[i].OrderID, got[i])
		case fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]):
			return fmt.Sprintf("order %s has the row %+v, want %+v", want[i].OrderID, got[i], want[i])
		}
	}
	return ""
}

// order counts a record of an order, of which all that was said before is given: expired, if lines that it states do
// not count; won, if it shows in what counts of the order; lost, if the whole order or one of the lines was stated
// later.
func (t *tally) order(before []mutation.Mutation, r record, keep time.Duration) {
	won, lost, expired := false, false, false
	for i := range r {
		t.clock.Add(r[i])
		h := t.clock.OrderHorizon(keep)
		expired = expired || expires(&r[i], h)
		for _, said := range before {
			lost = lost || said.Version.Compare(r[i].Version) > 0 &&
				(said.Op == mutation.SetOrder || shareItem(said.Order, r[i].Order))
		}
		after := append(slices.Clip(before), r[i])
		won = won || differentOrders(ordersOf(before).OrdersAfter(h), ordersOf(after).OrdersAfter(h)) != ""
		before = after
	}
	if expired {
		t.sure.Expired++
		return
	}
	t.add(won, lost)
}

// expires says whether a mutation states lines that do not count, or was made when nothing could be stated that does.
func expires(m *mutation.Mutation, h rows.Horizon) bool {
	latest := time.UnixMicro(m.Version.EventTime).Add(day).UnixMicro()
	return h > 0 && (latest <= int64(h) ||
		m.Op != mutation.RemoveLines && len(m.Order.Lines) > 0 && m.Order.Time <= int64(h))
}

func shareItem(a, b *mutation.Order) bool {
	return slices.ContainsFunc(a.Lines, func(l mutation.Line) bool {
		return slices.ContainsFunc(b.Lines, func(m mutation.Line) bool { return l.Item == m.Item })
	})
}
