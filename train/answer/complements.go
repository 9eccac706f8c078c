package answer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"giantstream/featurize/pairs"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/numeric"
)

// SolveShare is the share of its time, at most, that the goroutine that calls Update solves what goes with what again.
const SolveShare = 0.25

const (
	// solvedAtOnce items are solved before the clock is looked at: about 35 ms of a shop of 8,000 orders.
	solvedAtOnce = 32
	// longestPause between two calls of Update counts: after a longer one, following does not wait for solving.
	longestPause = time.Second
)

// complements say what goes with what: rows as of goes-with.parquet, by partner, which is what a basket has. They are
// those of a generation until the orders that are followed have been counted. Then they are what a generation of the
// same orders and nodes would have, bit for bit: their hashes tell items apart, as the positions of a
// generation are.
//
// A row takes 16 bytes. Each node that has any, or is ordered, takes about 160 beside and its id.
type complements struct {
	// live are the orders, up to manifest seq of each shard; nil if none are followed. Update alone uses it.
	live    *pairs.Live
	seq     []int64
	horizon rows.Horizon
	passed  rows.Horizon // the one whose orders were taken back
	isNode  func(id string) bool
	hashes  []uint64 // of ids
	// credit is how long items may be solved, by SolveShare of the time until updated, less what was used.
	credit  time.Duration
	updated time.Time

	mu     sync.RWMutex // of what follows: questions read it, and Update alone writes it
	number map[string]int32
	ids    []string
	// partners of each item, and what each says of items, ascending.
	partners [][]int32
	says     [][]said
	stats    Following
}

// said is a row: what a partner says of an item.
type said struct {
	item    int32
	score   float32
	support int32
}

func compareSaid(s said, item int32) int { return cmp.Compare(s.item, item) }

// Following says how far what goes with what has followed the orders.
type Following struct {
	// Orders are held, with Items.
	Orders, Items int
	// Stale items are still to be solved, until all is as of the orders that are held; Own of them are solved next.
	Stale, Own int
	// Solved items so far, and the Seconds that took.
	Solved  int64
	Seconds float64
	// Moved items were solved and are ordered with others than their embeddings know, which are to be made anew. Of
	// Encoded items they were made so far.
	Moved   int
	Encoded int64
}

// Following reports how the catalog follows orders, and whether it does.
func (c *Catalog) Following() (f Following, follows bool) {
	s := c.now.Load()
	if s == nil || s.complements == nil || s.complements.live == nil {
		return f, false
	}
	s.complements.mu.RLock()
	defer s.complements.mu.RUnlock()
	return s.complements.stats, true
}

// complementsOf returns what goes with what by the side of a generation, nil if that was built without orders. Orders
// are followed across generations.
func (c *Catalog) complementsOf(ctx context.Context, doc *generation.Doc) (*complements, error) {
	if !c.opts.Complements || doc.GoesWith == nil {
		return nil, nil
	}
	if s := c.now.Load(); c.opts.FollowOrders && s != nil && s.complements != nil {
		return s.complements, nil
	}
	t, err := readComplements(ctx, c.opts.Store, doc)
	if err == nil && c.opts.FollowOrders {
		err = t.readOrders(ctx, c.opts.Log, doc.Cut, c.opts.Shards)
	}
	return t, err
}

// readComplements reads the rows of a generation.
func readComplements(ctx context.Context, store sink.Store, doc *generation.Doc) (*complements, error) {
	t := &complements{number: map[string]int32{}}
	for r, err := range generation.Complements(ctx, store, doc) {
		if err != nil {
			return nil, err
		}
		item, partner := t.intern(r.Item), t.intern(r.Partner)
		t.partners[item] = append(t.partners[item], partner)
		t.says[partner] = append(t.says[partner], said{item, r.Score, r.Support})
	}
	for p, all := range t.says {
		slices.SortFunc(all, func(a, b said) int { return cmp.Compare(a.item, b.item) })
		t.says[p] = slices.Clone(all) // without room for more
	}
	return t, nil
}

func (c *complements) intern(id string) int32 {
	n, known := c.number[id]
	if known {
		return n
	}
	id, n = strings.Clone(id), int32(len(c.ids))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number[id], c.ids, c.hashes = n, append(c.ids, id), append(c.hashes, numeric.HashString(id))
	c.partners, c.says = append(c.partners, nil), append(c.says, nil)
	return n
}

// readOrders begins to follow the orders, with those of a generation's cut, whose rows there are.
func (c *complements) readOrders(ctx context.Context, log Log, cut map[int]int64, shards int) error {
	c.seq = make([]int64, shards)
	c.live = pairs.NewLive(pairs.DefaultRidge, 0, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.hashes[a], c.hashes[b]), strings.Compare(c.ids[a], c.ids[b]))
	}, func(item int32) bool { return c.isNode(c.ids[item]) })
	c.live.Grow(len(c.ids))
	for shard := range shards {
		if cut[shard] == 0 {
			continue
		}
		for stretch, err := range log.Stretches(ctx, shard, 0) {
			if err == nil {
				err = c.follow(shard, &stretch)
			}
			if err != nil {
				return err
			}
			if c.seq[shard] >= cut[shard] { // what a block has beyond is solved when its turn comes
				break
			}
		}
	}
	err := c.expire()
	c.live.InTurn()
	return err
}

// belongTo has the nodes be those of a catalog's index.
func (c *complements) belongTo(s *state) {
	if c != nil && c.live != nil {
		c.isNode = func(id string) bool {
			_, known := s.index.Handle(id)
			return known
		}
		c.live.Outdate()
	}
}

// noteNode notes that a node has come or gone.
func (c *complements) noteNode(id string) {
	if c != nil && c.live != nil {
		if _, ordered := c.number[id]; ordered {
			c.live.Outdate()
		}
	}
}

// follow takes over the orders of a stretch of a shard, if it is not behind those that there are.
func (c *complements) follow(shard int, stretch *Stretch) error {
	if c == nil || c.live == nil || stretch.To <= c.seq[shard] {
		return nil
	}
	c.horizon = max(c.horizon, stretch.Horizon)
	var lines []pairs.Line
	for o, err := range stretch.Orders {
		if err != nil {
			return err
		}
		key := rows.Orders.Key(&o)
		if o.Expire(c.horizon); o.Deleted {
			c.live.Delete(key)
			continue
		}
		lines = lines[:0]
		for k, time := range o.LineTimes() {
			lines = append(lines, pairs.Line{Item: c.intern(o.Items[k]), Time: time})
		}
		c.live.Grow(len(c.ids))
		if err := c.live.Set(key, generation.CustomerOf(&o), lines); err != nil {
			return fmt.Errorf("order %q: %w", o.OrderID, err)
		}
	}
	c.seq[shard] = stretch.To
	return nil
}

// expire takes back the orders that count no more.
func (c *complements) expire() error {
	if c == nil || c.live == nil || c.passed == c.horizon {
		return nil
	}
	c.passed = c.horizon
	return c.live.Expire(c.horizon.Passed)
}

// solve computes rows anew, those of the items of changed orders first, as long as there is credit, and what they are
// ordered with. It reports whether there were any.
func (c *complements) solve(now func() time.Time, b *behaviour) (solved bool) {
	if c == nil || c.live == nil {
		return false
	}
	began := now()
	c.credit += time.Duration(SolveShare * float64(min(began.Sub(c.updated), longestPause)))
	c.credit = min(c.credit, time.Duration(SolveShare*float64(longestPause)))
	c.updated = began
	n, last := 0, began
	for c.credit > 0 && !c.live.Settled() {
		items, hints := c.live.Solve(solvedAtOnce)
		n += len(items)
		c.mu.Lock()
		for k, item := range items {
			c.put(item, hints[k])
		}
		c.mu.Unlock()
		b.follow(c, items)
		at := now()
		c.credit, last = c.credit-at.Sub(last), at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.stats
	if f.Moved = 0; b != nil {
		f.Moved = len(b.moved)
	}
	f.Orders, f.Items, f.Stale, f.Own = c.live.Orders(), len(c.ids), c.live.Stale(), c.live.Changed()
	f.Solved, f.Seconds = f.Solved+int64(n), f.Seconds+last.Sub(began).Seconds()
	return n > 0
}

// noteEncoded notes that embeddings were made anew, how many wait, and what of the credit they took.
func (c *complements) noteEncoded(n, moved int, took time.Duration) {
	c.credit -= took
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Moved, c.stats.Encoded, c.stats.Seconds = moved, c.stats.Encoded+int64(n), c.stats.Seconds+took.Seconds()
}

// put replaces the rows of an item.
func (c *complements) put(item int32, hints []pairs.Hint) {
	for _, p := range c.partners[item] {
		if !slices.ContainsFunc(hints, func(h pairs.Hint) bool { return h.Partner == p }) {
			at, _ := slices.BinarySearchFunc(c.says[p], item, compareSaid)
			c.says[p] = slices.Delete(c.says[p], at, at+1)
		}
	}
	partners := make([]int32, len(hints))
	for k, h := range hints {
		partners[k] = h.Partner
		says := said{item, float32(h.Weight), h.Orders}
		at, found := slices.BinarySearchFunc(c.says[h.Partner], item, compareSaid)
		if found {
			c.says[h.Partner][at] = says
		} else {
			c.says[h.Partner] = slices.Insert(c.says[h.Partner], at, says)
		}
	}
	c.partners[item] = partners
}
