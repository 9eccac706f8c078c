package oracle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

// Orders returns the row of every order of which something was stated, by input and then by id. An order without
// lines is deleted.
func (g *Graph) Orders() []rows.Order { return g.OrdersAfter(0) }

// OrdersAfter returns what counts of the orders after a horizon: lines of a later time, and no orders without lines. A
// horizon of 0 is none.
func (g *Graph) OrdersAfter(h rows.Horizon) []rows.Order {
	var out []rows.Order
	for k, said := range g.orders {
		if row := orderRow(k, said, int64(h)); h == 0 || !row.Deleted {
			out = append(out, row)
		}
	}
	slices.SortFunc(out, func(a, b rows.Order) int {
		return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.OrderID, b.OrderID))
	})
	return out
}

const day = 24 * time.Hour

// tick notes the day of an order, unless the order would have been placed more than a day after it was stated.
func (g *Graph) tick(m mutation.Mutation) {
	placed, stated := time.UnixMicro(m.Order.Time), time.UnixMicro(m.Version.EventTime)
	if m.Op != mutation.RemoveLines && len(m.Order.Lines) > 0 && !placed.After(stated.Add(day)) {
		g.newest = max(g.newest, m.Order.Time)
	}
}

// OrderClock returns the newest time of an order, 0 for none.
func (g *Graph) OrderClock() int64 { return g.newest }

// OrderHorizon returns the time that orders must be later than to count, if they count for a while from when they were
// placed to the newest day of an order.
func (g *Graph) OrderHorizon(keep time.Duration) rows.Horizon {
	if keep == 0 || g.newest == 0 {
		return 0
	}
	return rows.Horizon(max(0, time.UnixMicro(g.newest).Truncate(day).Add(-keep).UnixMicro()))
}

// line is what an order has of an item.
type line struct {
	quantity float32
	time     int64
}

// orderRow says what all statements about one order come to: they are read from the oldest to the newest, and each
// does what it says. Statements of equal version are of one record: what it states wins over what it takes back, and
// the latest time wins. Of a horizon above 0, what remains are the lines that were placed after it.
func orderRow(k orderID, said []mutation.Mutation, horizon int64) rows.Order {
	said = slices.Clone(said)
	slices.SortFunc(said, func(a, b mutation.Mutation) int {
		return cmp.Or(a.Version.Compare(b.Version), cmp.Compare(a.Order.Time, b.Order.Time),
			cmp.Compare(a.Order.Kind, b.Order.Kind), cmp.Compare(a.Order.Customer, b.Order.Customer))
	})
	row := rows.Order{Input: int32(k.input), OrderID: k.id}
	lines := map[string]line{}
	for len(said) > 0 {
		of := 1
		for of < len(said) && said[of].Version == said[0].Version {
			of++
		}
		record := said[:of]
		if slices.ContainsFunc(record, func(m mutation.Mutation) bool { return m.Op == mutation.SetOrder }) {
			clear(lines)
		}
		stated := map[string]line{}
		for _, m := range record {
			for _, l := range m.Order.Lines {
				if m.Op == mutation.RemoveLines {
					delete(lines, l.Item)
					continue
				}
				// No order counts for longer than one that is placed a day after it is stated.
				now := line{l.Quantity, min(m.Order.Time, time.UnixMicro(m.Version.EventTime).Add(day).UnixMicro())}
				if was, ok := stated[l.Item]; !ok || now.time > was.time ||
					now.time == was.time && now.quantity > was.quantity {
					stated[l.Item] = now
				}
			}
		}
		maps.Copy(lines, stated)
		for _, m := range record {
			row.EventTime = m.Version.EventTime
			if m.Op != mutation.RemoveLines { // which does not say when the order was placed
				row.Time, row.Kind, row.Customer = m.Order.Time, m.Order.Kind, m.Order.Customer
			}
		}
		said = said[of:]
	}
	if horizon > 0 {
		maps.DeleteFunc(lines, func(_ string, l line) bool { return l.time <= horizon })
		if row.Time <= horizon {
			row.Customer = ""
		}
	}
	row.Items = slices.Sorted(maps.Keys(lines))
	differ := false
	for _, item := range row.Items {
		row.Quantities = append(row.Quantities, lines[item].quantity)
		row.Times = append(row.Times, lines[item].time)
		differ = differ || lines[item].time != row.Time
	}
	if !differ {
		row.Times = nil
	}
	row.Deleted = len(row.Items) == 0
	return row
}
