package oracle

import (
	"cmp"
	"maps"
	"slices"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

// Orders returns the row of every order of which something was stated, by input and then by id. An order without
// lines is deleted.
func (g *Graph) Orders() []rows.Order {
	var out []rows.Order
	for k, said := range g.orders {
		out = append(out, orderRow(k, said))
	}
	slices.SortFunc(out, func(a, b rows.Order) int {
		return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.OrderID, b.OrderID))
	})
	return out
}

// orderRow says what all statements about one order come to: they are read from the oldest to the newest, and each
// does what it says. Statements of equal version are of one record: what it states wins over what it takes back.
func orderRow(k orderID, said []mutation.Mutation) rows.Order {
	said = slices.Clone(said)
	slices.SortFunc(said, func(a, b mutation.Mutation) int {
		return cmp.Or(a.Version.Compare(b.Version), cmp.Compare(a.Order.Time, b.Order.Time),
			cmp.Compare(a.Order.Kind, b.Order.Kind), cmp.Compare(a.Order.Customer, b.Order.Customer))
	})
	row := rows.Order{Input: int32(k.input), OrderID: k.id}
	quantities := map[string]float32{}
	for len(said) > 0 {
		of := 1
		for of < len(said) && said[of].Version == said[0].Version {
			of++
		}
		record := said[:of]
		if slices.ContainsFunc(record, func(m mutation.Mutation) bool { return m.Op == mutation.SetOrder }) {
			clear(quantities)
		}
		stated := map[string]float32{}
		for _, m := range record {
			for _, l := range m.Order.Lines {
				if m.Op == mutation.RemoveLines {
					delete(quantities, l.Item)
				} else {
					stated[l.Item] = max(stated[l.Item], l.Quantity)
				}
			}
		}
		maps.Copy(quantities, stated)
		for _, m := range record {
			row.EventTime = m.Version.EventTime
			if m.Op != mutation.RemoveLines { // which does not say when the order was placed
				row.Time, row.Kind, row.Customer = m.Order.Time, m.Order.Kind, m.Order.Customer
			}
		}
		said = said[of:]
	}
	row.Items = slices.Sorted(maps.Keys(quantities))
	for _, item := range row.Items {
		row.Quantities = append(row.Quantities, quantities[item])
	}
	row.Deleted = len(row.Items) == 0
	return row
}
