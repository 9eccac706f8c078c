package preview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"giantstream/ingest/backfill"
	"giantstream/ingest/decode"
	"giantstream/internal/ambient"
	"giantstream/stream/mutation"
)

// Orders is what the first records of orders say. Records of one order count together, whatever their order.
type Orders struct {
	Side
	Orders int64 `json:"orders"`
	Lines  int64 `json:"lines"`
	// MaxItems is the most items that an order has.
	MaxItems int `json:"max_items"`
	// Kinds of the orders, most frequent first.
	Kinds []Kind `json:"kinds,omitempty"`
	// Pairs of items that orders have together, most frequent first, at most maxPairs. Those of orders with
	// more than maxPaired items are not counted.
	Pairs []Pair `json:"pairs,omitempty"`
	// Restated is how many records state an order again as a whole, and Shortened how many of these leave out most of
	// its items.
	Restated  int64 `json:"restated,omitempty"`
	Shortened int64 `json:"shortened,omitempty"`
	// Future is how many orders were placed later than now, and FirstFuture the first of them that was read.
	Future      int64   `json:"future,omitempty"`
	FirstFuture *Placed `json:"first_future,omitempty"`
}

// Placed is when an order was placed.
type Placed struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
}

// Kind counts the orders of a kind.
type Kind struct {
	Kind   string `json:"kind"`
	Orders int64  `json:"orders"`
}

// Pair counts the orders that have both of two items.
type Pair struct {
	Items  [2]string `json:"items"`
	Orders int64     `json:"orders"`
}

const (
	maxPairs  = 5
	maxKinds  = 10
	maxPaired = 100
	// maxCounted bounds the pairs that are counted at all.
	maxCounted = 1 << 20
	// clockSkew is how far the clocks of those who take orders may be ahead.
	clockSkew = time.Minute
)

type orders struct {
	Input
	found               map[string]*order
	restated, shortened int64
}

type order struct {
	read   int64 // which record stated it
	placed time.Time
	kind   string
	items  map[string]bool
}

// newOrders returns nil if no orders are mapped.
func newOrders(o *Options) (*orders, error) {
	for _, m := range o.Mapping.Orders {
		d, err := decode.Orders(m, mutation.Further, o.Limits, 1)
		if err != nil {
			return nil, err
		}
		c := &orders{found: map[string]*order{}}
		c.init(o, d, backfill.SampleOptions{Orders: &m}, c.take)
		return c, nil
	}
	return nil, nil
}

func (c *orders) take(where string, out []mutation.Mutation) {
	for i := range out {
		m := &out[i]
		row := Row{Where: where, ID: m.ID, Class: m.Order.Kind,
			Deleted: m.Op == mutation.RemoveLines || len(m.Order.Lines) == 0}
		for _, l := range m.Order.Lines {
			row.Links = append(row.Links, l.Item)
			c.named[l.Item] = true
		}
		c.show(&row)
		c.state(m)
	}
}

// state takes what a record says of its order.
func (c *orders) state(m *mutation.Mutation) {
	o := c.found[m.ID]
	if o != nil && m.Op == mutation.SetOrder && len(m.Order.Lines) > 0 {
		c.restate(o, m.Order.Lines)
	}
	if o == nil || m.Op == mutation.SetOrder {
		o = &order{read: c.Records, items: map[string]bool{}}
		c.found[m.ID] = o
	}
	o.placed = time.UnixMicro(m.Order.Time).UTC()
	o.kind = cmp.Or(m.Order.Kind, o.kind)
	for _, l := range m.Order.Lines {
		if m.Op == mutation.RemoveLines {
			delete(o.items, l.Item)
		} else {
			o.items[l.Item] = true
		}
	}
	if len(o.items) == 0 {
		delete(c.found, m.ID)
	}
}

// restate counts a record that states an order again.
func (c *orders) restate(o *order, lines []mutation.Line) {
	c.restated++
	kept := 0
	for _, l := range lines {
		if o.items[l.Item] {
			kept++
		}
	}
	if 2*kept < len(o.items) {
		c.shortened++
	}
}

// warnings say that records of orders look like parts of them, and that orders were placed in the future.
func (o *Orders) warnings() (out []string) {
	if o == nil {
		return nil
	}
	// Corrections and returns leave out an item or two, and rarely most of an order.
	if o.Shortened >= 10 && 4*o.Shortened >= o.Restated {
		out = append(out, fmt.Sprintf("%d of %d records that state an order again leave out most of what it had, and "+
			"only the newest record of an order counts; if each record has some of its items, such as events of a "+
			"session, add them up: --order-mode add (ingest.baskets.mode)", o.Shortened, o.Restated))
	}
	if first := o.FirstFuture; first != nil {
		out = append(out, fmt.Sprintf("%d of %d orders were placed in the future, the first of them, %q, at %s; check "+
			"the unit and the time zone of their times", o.Future, o.Orders, first.ID, first.Time.Format(time.RFC3339)))
	}
	return out
}

func (c *orders) summary() *Orders {
	out := &Orders{Side: c.result(), Orders: int64(len(c.found)), Restated: c.restated, Shortened: c.shortened}
	kinds, pairs := map[string]int64{}, map[[2]string]int64{}
	now, first := ambient.Clock(c.options.Clock)().Add(clockSkew), int64(0)
	for id, o := range c.found {
		if o.placed.After(now) {
			out.Future++
			if out.FirstFuture == nil || o.read < first {
				out.FirstFuture, first = &Placed{id, o.placed}, o.read
			}
		}
		out.Lines += int64(len(o.items))
		out.MaxItems = max(out.MaxItems, len(o.items))
		if o.kind != "" {
			kinds[o.kind]++
		}
		if len(o.items) <= maxPaired {
			countPairs(pairs, o.items)
		}
	}
	for kind, n := range kinds {
		out.Kinds = append(out.Kinds, Kind{kind, n})
	}
	slices.SortFunc(out.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Orders, a.Orders), cmp.Compare(a.Kind, b.Kind))
	})
	out.Kinds = out.Kinds[:min(len(out.Kinds), maxKinds)]
	for items, n := range pairs {
		out.Pairs = append(out.Pairs, Pair{items, n})
	}
	slices.SortFunc(out.Pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Orders, a.Orders), slices.Compare(a.Items[:], b.Items[:]))
	})
	out.Pairs = slices.Clone(out.Pairs[:min(len(out.Pairs), maxPairs)])
	return out
}

func countPairs(pairs map[[2]string]int64, items map[string]bool) {
	sorted := make([]string, 0, len(items))
	for item := range items {
		sorted = append(sorted, item)
	}
	slices.Sort(sorted)
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			pair := [2]string{a, b}
			if _, known := pairs[pair]; known || len(pairs) < maxCounted {
				pairs[pair]++
			}
		}
	}
}
