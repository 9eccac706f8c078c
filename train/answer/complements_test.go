package answer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/generationtest"
)

// windows are what a shard has committed, from manifest 1 on, the cut of the first generation.
type windows []window

type window struct {
	nodes   []rows.Row
	orders  []rows.Order
	vectors []rows.Vectors
	horizon rows.Horizon
}

func (l *windows) Stretches(_ context.Context, _ int, after int64) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		for k := int(after); k < len(*l); k++ {
			w := (*l)[k]
			if !yield(Stretch{To: int64(k + 1), Horizon: w.horizon,
				Rows: func(yield func(Row, error) bool) {
					for _, r := range w.nodes {
						if !yield(Row{Row: r}, nil) {
							return
						}
					}
				},
				Orders: func(yield func(rows.Order, error) bool) {
					for _, o := range w.orders {
						if !yield(o, nil) {
							return
						}
					}
				},
				Vectors: func(yield func(rows.Vectors, error) bool) {
					for _, v := range w.vectors {
						if !yield(v, nil) {
							return
						}
					}
				}}, nil) {
				return
			}
		}
	}
}

func (*windows) Offsets(context.Context, int, int64) (map[string]int64, error) {
	return nil, nil
}

func (l *windows) Attributes(ctx context.Context, shard int) iter.Seq2[Stretch, error] {
	return l.Stretches(ctx, shard, 0)
}

// days is a time.
func days(n int) int64 { return int64(n) * int64(24*time.Hour/time.Microsecond) }

// shopping is a shop whose orders and nodes change.
type shopping struct {
	log    *windows
	nodes  map[string]rows.Row
	orders map[string]rows.Order
	day    int
	r      *rand.Rand
}

// openShop is a shop whose first window has all of someShop.
func openShop(seed uint64) *shopping {
	s, first := someShop(), window{}
	w := &shopping{log: &windows{}, nodes: map[string]rows.Row{}, orders: map[string]rows.Order{}, day: 100,
		r: rand.New(rand.NewPCG(seed, 2))}
	for _, n := range s.Source {
		w.nodes[n.NodeID] = n
	}
	for k, o := range s.orders {
		o.Time = days(50 + k%50)
		w.orders[o.OrderID] = o
		first.orders = append(first.orders, o)
	}
	*w.log = append(*w.log, first)
	return w
}

// change commits a window of changes by chance.
func (w *shopping) change() {
	next := window{horizon: (*w.log)[len(*w.log)-1].horizon}
	w.day++
	for range 12 {
		o := rows.Order{OrderID: fmt.Sprintf("order-%d", w.r.IntN(1200)), Time: days(w.day)}
		for range w.r.IntN(6) {
			o.Items = append(o.Items, fmt.Sprintf("node-%04d", w.r.IntN(70)*4+len(o.OrderID)%4))
		}
		o.Items = slices.Compact(slices.Sorted(slices.Values(o.Items)))
		o.Quantities, o.Deleted = make([]float32, len(o.Items)), len(o.Items) == 0
		if times := o.LineTimes(); len(times) > 0 && w.r.IntN(3) == 0 {
			times[0] = days(w.day - w.r.IntN(80)) // some have expired when they are stated
			o.SetLineTimes(times)
		}
		if slices.ContainsFunc(next.orders, func(n rows.Order) bool { return n.OrderID == o.OrderID }) {
			continue
		}
		next.orders = append(next.orders, o)
		w.orders[o.OrderID] = o
	}
	if w.r.IntN(3) == 0 {
		next.horizon = max(next.horizon, rows.Horizon(days(w.day-45)))
	}
	for _, n := range []int{w.r.IntN(200), 200 + w.r.IntN(80)} {
		row := rows.Row{NodeID: fmt.Sprintf("node-%04d", n), Text: fmt.Sprintf("the topic%dword1 topic%dword2", n%4, n%4)}
		if row.Deleted = w.r.IntN(2) == 0; row.Deleted {
			delete(w.nodes, row.NodeID)
		} else {
			w.nodes[row.NodeID] = row
		}
		next.nodes = append(next.nodes, row)
	}
	*w.log = append(*w.log, next)
}

// asShop is the shop as a build would find it.
func (w *shopping) asShop() (s shop) {
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		s.Source = append(s.Source, w.nodes[id])
	}
	for _, id := range slices.Sorted(maps.Keys(w.orders)) {
		o := w.orders[id]
		if o.Expire((*w.log)[len(*w.log)-1].horizon); !o.Deleted {
			s.orders = append(s.orders, o)
		}
	}
	return s
}

// rowsIn returns all rows of the complements of a catalog, ascending by item.
func rowsIn(c *Catalog) (all []generation.Complement) {
	t := c.now.Load().complements
	for p, says := range t.says {
		for _, s := range says {
			all = append(all, generation.Complement{Item: t.ids[s.item], Partner: t.ids[p], Score: s.score,
				Support: s.support})
		}
	}
	slices.SortFunc(all, func(a, b generation.Complement) int {
		return cmp.Or(strings.Compare(a.Item, b.Item), cmp.Compare(b.Score, a.Score), strings.Compare(a.Partner, b.Partner))
	})
	return all
}

// builtRows returns the rows of a generation.
func builtRows(t *testing.T, store *memstore.Store, doc *generation.Doc) (all []generation.Complement) {
	t.Helper()
	for r, err := range generation.Complements(t.Context(), store, doc) {
		if err != nil {
			t.Fatal(err)
		}
		r.Item, r.Partner = strings.Clone(r.Item), strings.Clone(r.Partner)
		all = append(all, r)
	}
	return all
}

func update(t *testing.T, c *Catalog) {
	t.Helper()
	if _, err := c.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// settle updates until there is nothing to be solved.
func settle(t *testing.T, c *Catalog) Following {
	t.Helper()
	for {
		update(t, c)
		if f, follows := c.Following(); !follows || f.Stale == 0 {
			return f
		}
	}
}

// A catalog that has followed a history, over generations, is one that is opened now, and has the rows of a generation
// that is built now.
func TestSettledComplementsHaveNoHistory(t *testing.T) {
	w, store := openShop(1), &memstore.Store{}
	first := open(t, store, generationtest.Build(t, store, w.asShop(), shopSettings()))
	served, now := first, time.Unix(0, 0)
	options := Options{Store: store, Log: w.log, Shards: 1, Complements: true, FollowOrders: true, Exact: true,
		Generation: func() *generation.Generation { return served },
		Now: func() time.Time { // an Update solves a few items, or none
			now = now.Add(100 * time.Millisecond)
			return now
		}}
	c := New(options)
	update(t, c)
	if got, want := rowsIn(c), builtRows(t, store, first.Doc); !reflect.DeepEqual(got, want) {
		t.Errorf("%d rows at first, and not the %d of the generation", len(got), len(want))
	}
	for round := range 4 {
		for range 7 {
			w.change()
			update(t, c)
		}
		if round == 1 { // its cut is that of the first: what came after is followed again
			served = open(t, store, generationtest.Build(t, store, w.asShop(), shopSettings()))
		}
		if f := settle(t, c); f.Orders != len(w.asShop().orders) || f.Own > 0 || f.Solved == 0 {
			t.Errorf("%+v of %d orders", f, len(w.asShop().orders))
		}
		fresh, got := New(options), rowsIn(c)
		settle(t, fresh)
		if !reflect.DeepEqual(rowsIn(fresh), got) {
			t.Errorf("round %d: a catalog opened now has other rows", round)
		}
		elsewhere := &memstore.Store{}
		doc := generationtest.Build(t, elsewhere, w.asShop(), shopSettings())
		if want := builtRows(t, elsewhere, doc); !reflect.DeepEqual(got, want) {
			t.Errorf("round %d: %d rows, and not the %d of a generation", round, len(got), len(want))
		}
		for _, id := range slices.Sorted(maps.Keys(w.nodes))[:20] {
			a, errA := c.GoesWith([]string{id}, Wanted{K: 50})
			b, errB := fresh.GoesWith([]string{id}, Wanted{K: 50})
			if !reflect.DeepEqual(a, b) || (errA == nil) != (errB == nil) {
				t.Errorf("round %d, %s: %v (%v), and of a catalog opened now %v (%v)", round, id, a, errA, b, errB)
			}
		}
	}
}

// What is ordered together for the first time goes with each other at the next Update, and does not where the order is
// taken back. No new generation is needed.
func TestAnOrderIsAnsweredAtOnce(t *testing.T) {
	w, store := openShop(2), &memstore.Store{}
	served, now := open(t, store, generationtest.Build(t, store, w.asShop(), shopSettings())), time.Unix(0, 0)
	c := New(Options{Store: store, Log: w.log, Shards: 1, Complements: true, FollowOrders: true, Exact: true,
		Generation: func() *generation.Generation { return served }, Now: func() time.Time { return now }})
	update := func() {
		now = now.Add(time.Second)
		update(t, c)
	}
	update()
	const a, b = "node-0204", "node-0003"
	best := func() Complement {
		got, err := c.GoesWith([]string{a}, Wanted{K: 1})
		if err != nil || len(got.Items) == 0 {
			return Complement{}
		}
		return got.Items[0]
	}
	if got := best(); got.Partner != "" {
		t.Fatalf("before there is an order: %+v", got)
	}
	o := rows.Order{OrderID: "new", Items: []string{b, a}, Time: days(100)}
	*w.log = append(*w.log, window{orders: []rows.Order{o}})
	update()
	if got := best(); got.ID != b || got.Partner != a || got.Support != 1 {
		t.Errorf("after an order of both: %+v", got)
	}
	*w.log = append(*w.log, window{nodes: []rows.Row{{NodeID: b, Deleted: true}}})
	update()
	if got := best(); got.ID == b {
		t.Errorf("a deleted node: %+v", got)
	}
	*w.log = append(*w.log, window{nodes: []rows.Row{{NodeID: b, Text: "the topic3word1"}}})
	update()
	if got := best(); got.ID != b || got.Support != 1 {
		t.Errorf("it has come back: %+v", got)
	}
	o.Deleted, o.Items = true, nil
	*w.log = append(*w.log, window{orders: []rows.Order{o}})
	update()
	if got := best(); got.Partner != "" {
		t.Errorf("the order was deleted: %+v", got)
	}
}

// A catalog of a generation without orders holds none, and one that is not told to follow has the generation's.
func TestOrdersAreFollowedOnRequest(t *testing.T) {
	w, store := openShop(3), &memstore.Store{}
	s := w.asShop()
	served := open(t, store, generationtest.Build(t, store, s, shopSettings()))
	w.change()
	options := Options{Store: store, Log: w.log, Shards: 1, Complements: true, Exact: true,
		Generation: func() *generation.Generation { return served }}
	c := New(options)
	update(t, c)
	if _, follows := c.Following(); follows || !reflect.DeepEqual(rowsIn(c), builtRows(t, store, served.Doc)) {
		t.Error("the catalog does not have the rows of the generation")
	}
	s.orders, options.FollowOrders = nil, true
	served = open(t, store, generationtest.Build(t, store, s, shopSettings()))
	c = New(options)
	update(t, c)
	if _, follows := c.Following(); follows || c.now.Load().complements != nil {
		t.Error("without orders at the cut, orders are held")
	}
}
