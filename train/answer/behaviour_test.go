package answer

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"giantstream/featurize/pairs"
	"giantstream/internal/race"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/generationtest"
)

const (
	buyerGroups = 20
	groupSize   = 10
)

func member(group, k int) string { return fmt.Sprintf("item-%02d-%d", group, k) }

// groupOrder is an order of members of a group, by chance.
func groupOrder(r *rand.Rand, id, group int) rows.Order {
	o := rows.Order{OrderID: fmt.Sprintf("order-%d", id), Time: days(50 + id%50)}
	if id%3 > 0 {
		o.Customer = fmt.Sprintf("customer-%d", id%40*20+group)
	}
	for range 2 + r.IntN(4) {
		o.Items = append(o.Items, member(group, r.IntN(groupSize)))
	}
	o.Items = slices.Compact(slices.Sorted(slices.Values(o.Items)))
	o.Quantities = make([]float32, len(o.Items))
	return o
}

// openGroups is a shop of groups that are ordered together, of which the texts know nothing, and of an item that nobody
// has ordered.
func openGroups() *shopping {
	w := &shopping{log: &windows{}, nodes: map[string]rows.Row{}, orders: map[string]rows.Order{}, day: 100,
		r: rand.New(rand.NewPCG(3, 3))}
	for g := range buyerGroups {
		for k := range groupSize {
			w.nodes[member(g, k)] = rows.Row{NodeID: member(g, k), Text: fmt.Sprintf("a thing of word%d and word%d",
				w.r.IntN(30), w.r.IntN(30))}
		}
	}
	w.nodes["new"] = rows.Row{NodeID: "new", Text: "a thing of word3 and word4"}
	w.nodes[member(0, 0)] = rows.Row{NodeID: member(0, 0), Text: w.nodes["new"].Text}
	first := window{}
	for k := range 1200 {
		o := groupOrder(w.r, k, w.r.IntN(buyerGroups))
		w.orders[o.OrderID] = o
		first.orders = append(first.orders, o)
	}
	for _, id := range slices.Sorted(maps.Keys(w.nodes)) {
		first.nodes = append(first.nodes, w.nodes[id])
	}
	*w.log = append(*w.log, first)
	return w
}

// build builds a generation of all there is, with a view of the orders.
func (w *shopping) build(t *testing.T, store *memstore.Store) *generation.Generation {
	t.Helper()
	settings := shopSettings()
	settings.Encoder, settings.Epochs = "hybrid", 1
	settings.ProjectionDim, settings.EmbeddingDim = 64, 64 // with few axes, views are not kept apart
	settings.FromOrders = &fit.FromOrders{Measure: pairs.Cosine, MinSupport: 2, MinAssociation: 0.05, MaxPartners: 5}
	g := open(t, store, generationtest.Build(t, store, w.asShop(), settings))
	if b := g.Doc.Graph.Orders.Behaviour; b == nil || b.Weight == 0 {
		t.Fatalf("the view of the orders is %+v: nothing can follow them", b)
	}
	return g
}

// vectorsIn returns the embeddings of a catalog by id.
func vectorsIn(w *shopping, c *Catalog) map[string][]float32 {
	all, s := map[string][]float32{}, c.now.Load()
	for id := range w.nodes {
		v := make([]float32, s.index.Dim())
		if s.index.Vector(id, v) {
			all[id] = v
		}
	}
	return all
}

// settleAll updates until nothing is to be solved or encoded.
func settleAll(t *testing.T, c *Catalog) Following {
	t.Helper()
	for {
		if f := settle(t, c); f.Moved == 0 {
			return f
		}
	}
}

func sameVectors(a, b map[string][]float32) (differ int) {
	for id, v := range a {
		if !slices.Equal(v, b[id]) {
			differ++
		}
	}
	return differ + max(0, len(b)-len(a))
}

// An item that is ordered for the first time moves to those that it is ordered with, without a generation, and back
// once the orders are taken back. Once a catalog has settled, its embeddings are those of one that is opened now, over
// generations.
func TestEmbeddingsFollowTheOrders(t *testing.T) {
	race.SkipComputing(t)
	w, store := openGroups(), &memstore.Store{}
	build := func() *generation.Generation { return w.build(t, store) }
	served, now := build(), time.Unix(0, 0)
	options := Options{Store: store, Log: w.log, Shards: 1, Complements: true, FollowOrders: true, Exact: true,
		Generation: func() *generation.Generation { return served },
		Now:        func() time.Time { now = now.Add(10 * time.Millisecond); return now }}
	c := New(options)
	near := func(group int) (n int) {
		found, err := c.Similar([]Like{{ID: "new", Weight: 1}}, Wanted{K: groupSize})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range found.Neighbours {
			for k := range groupSize {
				if one.ID == member(group, k) {
					n++
				}
			}
		}
		return n
	}
	if f := settleAll(t, c); f.Encoded > 0 || f.Solved == 0 {
		t.Errorf("the rows of the generation are not those of its orders: %+v", f)
	}
	group, before := 0, near(0) // the one that the text is farthest from
	for g := range buyerGroups {
		if n := near(g); n < before {
			group, before = g, n
		}
	}
	atFirst := vectorsIn(w, c)

	if _, err := c.texts.get(nil); !errors.Is(err, ErrTexts) {
		t.Error(err)
	}
	update(t, c)
	// A text, and an item that nobody has ordered, are compared with texts: what is ordered is no less like them.
	for _, q := range []Like{{Text: w.nodes["new"].Text, Weight: 1}, {ID: "new", Weight: 1}} {
		found, err := c.Similar([]Like{q}, Wanted{K: 3, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(found.Neighbours, func(n Neighbour) bool { return n.ID == member(0, 0) })
		if at < 0 || found.Neighbours[at].Cosine < 0.95 {
			t.Errorf("%+v: the ordered item with the same text is not near: %+v", q, found.Neighbours)
			continue
		}
		sum := found.Neighbours[at].Because.Rounding
		for _, v := range found.Neighbours[at].Because.Views {
			sum += v.Cosine
		}
		if math.Abs(sum-float64(found.Neighbours[at].Cosine)) > 1e-6 ||
			math.Abs(found.Neighbours[at].Because.Rounding) > 0.05 {
			t.Errorf("the reasons of %v add up to %v: %+v", found.Neighbours[at].Cosine, sum,
				found.Neighbours[at].Because)
		}
	}

	basket, err := c.GoesWith([]string{"new"}, Wanted{K: 3})
	if err != nil || !slices.ContainsFunc(basket.Items, func(one Complement) bool { return one.ID == member(0, 0) }) {
		t.Errorf("with an item that nobody has ordered goes %+v, %v", basket, err)
	}

	next := window{}
	for k := range 30 {
		o := groupOrder(w.r, 5000+k, group)
		o.Items = append(o.Items, "new")
		o.Quantities = append(o.Quantities, 1)
		w.orders[o.OrderID] = o
		next.orders = append(next.orders, o)
	}
	*w.log = append(*w.log, next)
	f := settleAll(t, c)
	if after := near(group); after < before+groupSize/2 {
		t.Errorf("%d of the group of %d are near, %d before it was ordered with them: %+v", after, groupSize, before, f)
	}
	because, err := c.Similar([]Like{{ID: "new", Weight: 1}}, Wanted{K: 3, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range because.Neighbours {
		if n.Because == nil {
			t.Errorf("%s is near for no reason: %s", n.ID, n.WhyNot)
		}
	}
	fresh := New(options)
	settleAll(t, fresh)
	ordered := vectorsIn(w, c)
	if n := sameVectors(ordered, vectorsIn(w, fresh)); n > 0 {
		t.Errorf("a catalog that is opened now has %d of %d other embeddings", n, len(ordered))
	}

	served = build() // from now on it is followed from there
	if now := settleAll(t, c); now.Encoded > f.Encoded || now.Solved == f.Solved {
		t.Errorf("the rows of the next generation are not those of its orders: %+v", now)
	}
	latest := New(options)
	settleAll(t, latest)
	if n := sameVectors(vectorsIn(w, c), vectorsIn(w, latest)); n > 0 {
		t.Errorf("after a generation, a catalog that is opened now has %d other embeddings", n)
	}

	served = first(t, store)
	back := window{}
	for _, o := range next.orders {
		back.orders = append(back.orders, rows.Order{OrderID: o.OrderID, Time: o.Time, Deleted: true})
	}
	*w.log = append(*w.log, back)
	settleAll(t, c)
	if n := sameVectors(vectorsIn(w, c), atFirst); n > 0 {
		t.Errorf("%d embeddings are not what they were before the orders that were taken back", n)
	}
}

// first opens the first generation again.
func first(t *testing.T, store *memstore.Store) *generation.Generation {
	t.Helper()
	doc, err := generation.Load(t.Context(), store, 1)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, store, doc)
}
