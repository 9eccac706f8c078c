package sim

import (
	"fmt"
	"slices"
	"strings"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// ordersOf returns the rows of the orders that a set of mutations states, deleted ones included, by key.
func ordersOf(all []mutation.Mutation) []rows.Order {
	g := oracle.New(false)
	for _, m := range all {
		if m.Order != nil {
			g.Add(m)
		}
	}
	return g.Orders()
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

// order counts a record of an order, of which all that was said before is given: won, if it shows in the order's row;
// lost, if the whole order or one of the lines was stated later.
func (t *tally) order(before []mutation.Mutation, r record) {
	won, lost := false, false
	for i := range r {
		for _, said := range before {
			lost = lost || said.Version.Compare(r[i].Version) > 0 &&
				(said.Op == mutation.SetOrder || shareItem(said.Order, r[i].Order))
		}
		after := append(slices.Clip(before), r[i])
		won = won || differentOrders(ordersOf(before), ordersOf(after)) != ""
		before = after
	}
	t.add(won, lost)
}

func shareItem(a, b *mutation.Order) bool {
	return slices.ContainsFunc(a.Lines, func(l mutation.Line) bool {
		return slices.ContainsFunc(b.Lines, func(m mutation.Line) bool { return l.Item == m.Item })
	})
}
