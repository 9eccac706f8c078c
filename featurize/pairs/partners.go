package pairs

import (
	"cmp"
	"slices"

	"giantstream/internal/parallel"
)

// Rule says which items are partners.
type Rule struct {
	// Measure is the association; "" is NPMI.
	Measure Measure
	// MinSupport is the least number of orders that have both items; see Settle for 0.
	MinSupport int
	// MinAssociation is the least association.
	MinAssociation float64
	// MaxPartners bounds the partners of an item, those of the highest association; 0 is no bound.
	MaxPartners int
}

// Partner is an item that goes with another.
type Partner struct {
	Item int32
	// Orders is how many orders of no more than the greatest size have both.
	Orders int32
	// Weight is the weight of these orders; one of a single item weighs 2²⁴.
	Weight int64
	// Association of both, by the rule's measure.
	Association float64
}

// Counter counts the pairs of one item after the other. Each goroutine needs its own.
type Counter struct {
	x      *Incidence
	weight []int64
	orders []int32
	met    []int32
	row    []cell // of a regression
	some   []counted
	last   int32
	pairs  int64 // counted so far
}

// NewCounter returns a counter of pairs. It sees later changes of the incidence.
func (x *Incidence) NewCounter() *Counter {
	c := &Counter{x: x}
	c.grow()
	return c
}

// grow makes room for the items that there are now.
func (c *Counter) grow() {
	if n := len(c.x.of) - len(c.weight); n > 0 {
		c.weight, c.orders = append(c.weight, make([]int64, n)...), append(c.orders, make([]int32, n)...)
	}
}

// ordersAtOnce is how many orders are gathered at a time.
const ordersAtOnce = 64

// counted is an order whose pairs count.
type counted struct {
	items  []int32
	weight int64
}

// gather returns those of some orders whose pairs count. Orders lie all over memory. A loop that counts one after the
// other waits for each of them, but the processor fetches many at a time if no branch depends on what they hold. So
// gather reads the last item of each, which brings it into the cache.
func (c *Counter) gather(numbers []int32) []counted {
	c.some = c.some[:0]
	for _, number := range numbers {
		o := &c.x.orders[number]
		c.some = append(c.some, counted{o.items, int64(o.stated)})
	}
	last := int32(0)
	for _, o := range c.some {
		last += o.items[len(o.items)-1]
	}
	c.last = last
	n := 0
	for _, o := range c.some {
		if int(o.weight) <= c.x.maxItems {
			c.some[n] = counted{o.items, weightOf(int(o.weight))}
			n++
		}
	}
	return c.some[:n]
}

// count counts the pairs of an item, and those of the item with itself. What it has met is to be taken.
func (c *Counter) count(item int32) {
	c.grow()
	for numbers := range slices.Chunk(c.x.of[item], ordersAtOnce) {
		for _, o := range c.gather(numbers) {
			for _, j := range o.items {
				if c.orders[j] == 0 {
					c.met = append(c.met, j)
				}
				c.orders[j]++
				c.weight[j] += o.weight
			}
		}
	}
}

// take returns how many orders have both, and their weight, of an item that was met, and forgets them.
func (c *Counter) take(j int32) (orders int32, weight int64) {
	orders, weight = c.orders[j], c.weight[j]
	c.orders[j], c.weight[j] = 0, 0
	return orders, weight
}

// Partners appends the partners of an item to out: the highest association first, of equal ones the smaller item.
func (c *Counter) Partners(item int32, rule Rule, out []Partner) []Partner {
	x := c.x
	if !x.isCounted(item) {
		return out
	}
	better := func(a, b Partner) int {
		return cmp.Or(cmp.Compare(b.Association, a.Association), x.order(a.Item, b.Item))
	}
	begin, most := len(out), rule.MaxPartners
	var least *Partner // of those kept, once there are as many as may be
	c.count(item)
	for _, j := range c.met {
		n, w := c.take(j)
		if j == item || !x.isCounted(j) {
			continue
		}
		if c.pairs++; int(n) < rule.MinSupport {
			continue
		}
		a := rule.Measure.association(w, x.weight[item], x.weight[j], x.total)
		if a < rule.MinAssociation {
			continue
		}
		p := Partner{j, n, w, a}
		if least != nil && better(p, *least) > 0 {
			continue
		}
		out = append(out, p)
		if most > 0 && len(out)-begin == 2*most { // so that not all partners are sorted of an item that has many
			slices.SortFunc(out[begin:], better)
			out = out[:begin+most]
			least = new(out[len(out)-1])
		}
	}
	c.met = c.met[:0]
	slices.SortFunc(out[begin:], better)
	if most > 0 {
		out = out[:min(len(out), begin+most)]
	}
	return out
}

// block is how many items a goroutine counts at a time.
const block = 64

// Counters are a Counter for each of some goroutines.
type Counters struct{ each []*Counter }

// NewCounters returns counters for that many goroutines, 0 for one per CPU. They see later changes of the incidence.
func (x *Incidence) NewCounters(workers int) *Counters {
	c := &Counters{make([]*Counter, parallel.Workers(workers))}
	for k := range c.each {
		c.each[k] = x.NewCounter()
	}
	return c
}

// Partners returns the partners of the items from lo to before hi, each as Counter.Partners has them. The number of
// goroutines changes nothing.
func (c *Counters) Partners(lo, hi int, rule Rule) [][]Partner {
	return c.PartnersOf(numbers(lo, hi), rule)
}

// numbers returns those from lo to before hi.
func numbers(lo, hi int) []int32 {
	items := make([]int32, hi-lo)
	for i := range items {
		items[i] = int32(lo + i)
	}
	return items
}

// PartnersOf is Partners of some items.
func (c *Counters) PartnersOf(items []int32, rule Rule) [][]Partner {
	all := make([][]Partner, len(items))
	parallel.ForEach(len(items), block, len(c.each), func(worker, _, from, to int) {
		var found []Partner
		for i := from; i < to; i++ {
			found = c.each[worker].Partners(items[i], rule, found[:0])
			all[i] = slices.Clone(found)
		}
	})
	return all
}

// Counted is how many pairs were counted so far, partners or not: each twice, once all items were asked for.
func (c *Counters) Counted() (pairs int64) {
	for _, one := range c.each {
		pairs += one.pairs
	}
	return pairs
}
