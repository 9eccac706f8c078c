package pairs

import (
	"cmp"
	"slices"

	"giantstream/featurize/sparse"
)

// Live holds orders by key while they change, and says which ridges have to be computed again. An order changes counts
// of its own items, which are solved first. It also changes what partners are chosen, and what they say beyond others,
// of nearly all items: these are solved in turn, whenever there is time.
//
// Once it has Settled, the newest hints of each item are those that Ridges returns for an Incidence of the same orders,
// bit for bit, whatever came before. It is not safe for concurrent use.
type Live struct {
	x        *Incidence
	counters *Counters
	ridge    Ridge
	orders   map[string]held
	// association is that of the orders and of customers, as of the last call of Associations if it is not outdated.
	customers   customers
	association *Association
	outdated    bool
	// times are those of the lines of an order, by its number, where they differ.
	times map[int32][]int64

	own   []int32 // items of changed orders that wait for their turn, each once
	waits []bool  // whether an item is among them
	next  int32   // the item whose turn it is
	left  int     // items that have to have their turn until all is as of now
}

// held is the number of an order, who placed it, 0 where that is unknown, and the oldest time of its lines.
type held struct {
	number   int32
	customer uint64
	oldest   int64
}

// Line is an item of an order, and the time by which it expires.
type Line struct {
	Item int32
	Time int64
}

// NewLive returns a Live without items and orders. maxItems is as of New. Numbers of items may be given in any order,
// as compare says which of two comes first where all else is equal. Items that do not count have no hints and are none;
// but an order that has them is as large. Call Outdate when others count.
func NewLive(o Ridge, maxItems int, compare func(a, b int32) int, counts func(item int32) bool) *Live {
	x := New(0, maxItems)
	x.compare, x.counts = compare, counts
	of := New(0, maxItems)
	of.compare, of.counts = compare, counts
	return &Live{x: x, counters: x.NewCounters(1), ridge: o, orders: map[string]held{}, times: map[int32][]int64{},
		customers: customers{x: of, of: map[uint64]*customer{}}, association: NewAssociation(x, of)}
}

// Grow makes room for items below a number.
func (l *Live) Grow(items int) {
	if n := items - l.x.Items(); n > 0 {
		l.x.grow(n)
		l.customers.x.grow(n)
		l.waits = append(l.waits, make([]bool, n)...)
		l.Outdate()
	}
}

// Orders is the number of orders.
func (l *Live) Orders() int { return l.x.Orders() }

// Set replaces the order of a key, or adds it. Without lines, there is no order. Lines are of different items; Set
// sorts them. customer is who placed the order, 0 where that is unknown.
func (l *Live) Set(key string, customer uint64, lines []Line) error {
	if len(lines) == 0 {
		l.Delete(key)
		return nil
	}
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.Item, b.Item) })
	items, oldest, newest := make([]int32, len(lines)), lines[0].Time, lines[0].Time
	for k, line := range lines {
		items[k], oldest, newest = line.Item, min(oldest, line.Time), max(newest, line.Time)
	}
	before, replaces := l.orders[key]
	of := held{before.number, customer, oldest}
	if !replaces || before.customer != customer || !slices.Equal(l.x.ItemsOf(before.number), items) {
		var err error
		if of.number, err = l.x.Add(items, len(items)); err != nil {
			return err
		}
		l.customers.change(customer, items, 1)
		if replaces {
			l.remove(before)
		}
		l.change(items)
	}
	delete(l.times, of.number)
	if oldest < newest {
		times := make([]int64, len(lines))
		for k, line := range lines {
			times[k] = line.Time
		}
		l.times[of.number] = times
	}
	l.orders[key] = of
	return nil
}

// Delete takes back the order of a key, if there is one.
func (l *Live) Delete(key string) {
	if of, ok := l.orders[key]; ok {
		l.remove(of)
		delete(l.orders, key)
	}
}

func (l *Live) remove(of held) {
	items := l.x.ItemsOf(of.number)
	l.change(items)
	l.customers.change(of.customer, items, -1)
	l.x.Remove(of.number)
	delete(l.times, of.number)
}

// Expire takes back the lines whose time has passed. It looks at all orders.
func (l *Live) Expire(passed func(time int64) bool) error {
	var due []string
	for key, of := range l.orders {
		if passed(of.oldest) {
			due = append(due, key)
		}
	}
	slices.Sort(due) // for items to have their turn in the same order
	for _, key := range due {
		of := l.orders[key]
		var left []Line
		for k, time := range l.times[of.number] { // none: all lines have the same
			if !passed(time) {
				left = append(left, Line{l.x.ItemsOf(of.number)[k], time})
			}
		}
		if err := l.Set(key, of.customer, left); err != nil {
			return err
		}
	}
	return nil
}

// change notes that the orders of items have changed.
func (l *Live) change(items []int32) {
	for _, i := range items {
		if !l.waits[i] {
			l.waits[i], l.own = true, append(l.own, i)
		}
	}
	l.Outdate()
}

// Outdate has all items wait for their turn.
func (l *Live) Outdate() { l.left, l.outdated = l.x.Items(), true }

// InTurn has items of changed orders wait for their turn as all others do: where the hints at hand are of these orders.
func (l *Live) InTurn() {
	l.own = nil
	clear(l.waits)
}

// Changed is how many items of changed orders wait. Solve takes them first.
func (l *Live) Changed() int { return len(l.own) }

// Stale is how many items wait for their turn until all hints are those of the orders as they are.
func (l *Live) Stale() int { return l.left }

// Settled says whether all items have had their turn since the last change.
func (l *Live) Settled() bool { return l.left == 0 }

// Solve returns the hints of the next items, `most` at most; of none once it has settled.
func (l *Live) Solve(most int) (items []int32, hints [][]Hint) {
	n := min(most, len(l.own))
	items = slices.Clone(l.own[:n])
	l.own = l.own[n:]
	for _, i := range items {
		l.waits[i] = false
	}
	for ; len(items) < most && l.left > 0; l.left-- {
		if int(l.next) >= l.x.Items() {
			l.next = 0
		}
		items = append(items, l.next)
		l.next++
	}
	return items, l.counters.Ridges(items, l.ridge)
}

// Associations returns what items that Solve returned are associated with, `most` items at most each, in the order that
// compare says: what Association says of the orders as they are, and of what each customer has ordered.
func (l *Live) Associations(items []int32, most int) []sparse.Vector {
	if l.outdated {
		l.association.renew()
		l.outdated = false
	}
	return l.association.Rows(items, most, 1, func(_, _ int32) bool { return false })
}

// Support is the number of orders that have an item.
func (l *Live) Support(item int32) int { return l.x.Support(item) }
