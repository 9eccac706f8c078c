package pairs

import (
	"fmt"
	"slices"
)

// customers are what each customer has ordered, as one order. One with more items than an order may have has no pairs.
type customers struct {
	x  *Incidence
	of map[uint64]*customer
}

// customer is how many orders of a customer have each of some items, which ascend.
type customer struct {
	items, orders []int32
	number        int32 // of the order in the incidence, if it is held there
	held          bool
}

// change adds an order of a customer, or takes it back with by = -1. Items ascend.
func (c *customers) change(of uint64, items []int32, by int32) {
	if of == 0 {
		return
	}
	who := c.of[of]
	if who == nil {
		who = &customer{}
		c.of[of] = who
	}
	changed := false
	for _, item := range items {
		at, found := slices.BinarySearch(who.items, item)
		if !found {
			who.items = slices.Insert(grown(who.items), at, item)
			who.orders = slices.Insert(grown(who.orders), at, 0)
			changed = true
		}
		if who.orders[at] += by; who.orders[at] == 0 {
			who.items, who.orders = slices.Delete(who.items, at, at+1), slices.Delete(who.orders, at, at+1)
			changed = true
		}
	}
	if !changed {
		return
	}
	if who.held {
		c.x.Remove(who.number)
		who.held = false
	}
	switch n := len(who.items); {
	case n == 0:
		delete(c.of, of)
	case n <= c.x.maxItems:
		number, err := c.x.Add(who.items, n)
		if err != nil {
			panic(fmt.Sprintf("pairs: items of an order that was added: %v", err))
		}
		who.number, who.held = number, true
	}
}
