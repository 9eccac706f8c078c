package build

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/pairs"
	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

// groupedOrders are orders of items of one of some groups, which texts know nothing of; of any items for one group.
func groupedOrders(all []rows.Row, groups int, seed uint64) (orders []rows.Order) {
	r := rand.New(rand.NewPCG(seed, 11))
	group := make([][]string, groups)
	for _, k := range r.Perm(len(all)) {
		g := r.IntN(groups)
		group[g] = append(group[g], all[k].NodeID)
	}
	for k := range 6 * len(all) {
		o := rows.Order{OrderID: fmt.Sprintf("order-%d", k), Time: int64(k)}
		if k%3 > 0 {
			o.Customer = fmt.Sprintf("customer-%d", r.IntN(len(all)))
		}
		of := group[r.IntN(groups)]
		for range 2 + r.IntN(4) {
			o.Items = append(o.Items, of[r.IntN(len(of))])
		}
		o.Items = slices.Compact(slices.Sorted(slices.Values(o.Items)))
		orders = append(orders, o)
	}
	return orders
}

func behaviourSettings() fit.Settings {
	s := settings()
	s.Encoder, s.Epochs = "hybrid", 1
	s.FromOrders = &fit.FromOrders{Measure: pairs.Cosine, MinSupport: 2, MinAssociation: 0.05, MaxPartners: 5}
	return s
}

// What items are ordered with is a view of them, the same for any division of the work and of the log, and whether
// texts know of it or not. Encoders without such a view have no such stage.
func TestBehaviourIsAView(t *testing.T) {
	race.SkipComputing(t)
	all := randomLinks(300, 3)
	orders := groupedOrders(all, 20, 1)
	type built struct {
		doc   *generation.Doc
		sums  map[string][32]byte
		store *memstore.Store
	}
	build := func(shards, partitions int, s fit.Settings, engine tasks.Engine) built {
		dealt := make([][]rows.Order, shards)
		for k, o := range orders {
			dealt[k%shards] = append(dealt[k%shards], o)
		}
		log := orderedLogs{logsOf(all, shards, 1), dealt}
		store := &memstore.Store{}
		b := newSetup(store, log.shardLogs, s)
		b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
		doc := b.run(t, b.begin(t, partitions, 0), engine)
		sums := digests(t, store)
		for key := range sums {
			if strings.Contains(key, "/part-") || strings.HasSuffix(key, "generation.json") {
				delete(sums, key)
			}
		}
		return built{doc, sums, store}
	}
	one := build(1, 1, behaviourSettings(), tasks.Local{Workers: 1})
	s := one.doc.Graph.Orders.Behaviour
	if s == nil || !(s.Weight > 0) || s.Items < 290 || s.Asked < 100 || !(s.With.AUC > s.Text.AUC+0.1) {
		t.Fatalf("the view is %+v", s)
	}
	for _, c := range [][2]int{{3, 1}, {2, 8}} {
		other := build(c[0], c[1], behaviourSettings(), shuffled{1})
		for key, sum := range one.sums {
			if other.sums[key] != sum {
				t.Errorf("%d shards, %d partitions: %s differs", c[0], c[1], key)
			}
		}
	}
	g, err := generation.Open(t.Context(), one.store, one.doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	dim := g.Encoder.Dim()
	texts, known, text := []string{all[0].Text}, make([]float32, dim), make([]float32, dim)
	if err := g.Encode([]string{all[0].NodeID}, texts, known); err != nil {
		t.Fatal(err)
	}
	if err := g.Encode([]string{"unknown"}, texts, text); err != nil {
		t.Fatal(err)
	}
	alone := make([]float32, dim)
	if err := g.Encoder.Encode(texts, alone); err != nil || slices.Equal(known, text) || !slices.Equal(alone, text) {
		t.Errorf("the item has %v, another with its text %v, the text alone %v, %v", known, text, alone, err)
	}
	linear := behaviourSettings()
	linear.Encoder = "linear"
	if doc := build(1, 1, linear, tasks.Local{Workers: 1}).doc; doc.Graph.Orders.Behaviour != nil {
		t.Errorf("linear has a view of behaviour: %+v", doc.Graph.Orders.Behaviour)
	}
}

// A catalog whose newest orders link nothing anew is asked for links that are drawn.
func TestBehaviourOfACatalogWithoutNewPairs(t *testing.T) {
	race.SkipComputing(t)
	all := randomLinks(300, 3)
	orders := groupedOrders(all, 20, 1)
	for k, o := range slices.Clone(orders) {
		o.OrderID, o.Time = fmt.Sprintf("again-%d", k), int64(len(orders)+k)
		orders = append(orders, o)
	}
	log := orderedLogs{logsOf(all, 1, 1), [][]rows.Order{orders}}
	settings := behaviourSettings()
	settings.FromOrders = &fit.FromOrders{Measure: pairs.Cosine, MinSupport: 1, MaxPartners: 100} // all pairs are links
	b := newSetup(&memstore.Store{}, log.shardLogs, settings)
	b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
	s := b.run(t, b.begin(t, 2, 0), tasks.Local{Workers: 2}).Graph.Orders.Behaviour
	if s == nil || !s.Drawn || s.Asked < 100 || !(s.Weight > 0) || !(s.With.AUC > s.Text.AUC+0.1) {
		t.Errorf("the view is %+v", s)
	}
}

// Orders of random items say nothing, and weigh nothing. Neither do those that are too few to tell. Where the newest
// orders are too few, older ones tell.
func TestNoiseHasNoBehaviour(t *testing.T) {
	race.SkipComputing(t)
	all := randomLinks(300, 3)
	few, untimed := groupedOrders(all, 20, 1), groupedOrders(all, 1, 2)
	for k := range untimed {
		untimed[k].Time = 0
	}
	for name, orders := range map[string][]rows.Order{"noise": groupedOrders(all, 1, 2), "noise without times": untimed,
		"noise of pairs": drawnPairs(all, 1200, 7), "too few": few[:15], "few": few[:150]} {
		log := orderedLogs{logsOf(all, 1, 1), [][]rows.Order{orders}}
		store := &memstore.Store{}
		settings := behaviourSettings()
		settings.FromOrders.MinSupport, settings.FromOrders.MinAssociation = 1, 0
		b := newSetup(store, log.shardLogs, settings)
		b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
		doc := b.run(t, b.begin(t, 2, 0), tasks.Local{Workers: 2})
		s := doc.Graph.Orders.Behaviour
		if s == nil || (s.Weight > 0) != (name == "few") || (s.Items > 0) != (name == "few") ||
			(s.Asked < 100) != (name == "too few") {
			t.Errorf("%s: the view is %+v", name, s)
		}
		g, err := generation.Open(t.Context(), store, doc, nil)
		if err != nil {
			t.Fatal(err)
		}
		dim := g.Encoder.Dim()
		item, text := make([]float32, dim), make([]float32, dim)
		if err := train.EncodeItems(g.Encoder, []string{all[0].NodeID}, []string{all[0].Text}, nil, item); err != nil {
			t.Fatal(err)
		}
		if err := g.Encoder.Encode([]string{all[0].Text}, text); err != nil || s.Items == 0 && !slices.Equal(item, text) {
			t.Errorf("%s: the item has %v, its text %v, %v", name, item, text, err)
		}
	}
}

// drawnPairs are n orders of two items each.
func drawnPairs(all []rows.Row, n int, seed uint64) (orders []rows.Order) {
	r := rand.New(rand.NewPCG(seed, 12))
	for k := range n {
		items := r.Perm(len(all))[:2]
		orders = append(orders, rows.Order{OrderID: fmt.Sprintf("order-%d", k), Time: int64(k),
			Items: slices.Sorted(slices.Values([]string{all[items[0]].NodeID, all[items[1]].NodeID}))})
	}
	return orders
}

// Orders whose copies take more than the memory are links all the same, and no view.
func TestBehaviourKeepsTheMemory(t *testing.T) {
	race.SkipComputing(t)
	all := randomLinks(300, 3)
	log := orderedLogs{logsOf(all, 1, 1), [][]rows.Order{groupedOrders(all, 20, 1)}}
	b := newSetup(&memstore.Store{}, log.shardLogs, behaviourSettings())
	b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
	b.worker.MemoryLimit = 256 << 10
	o := b.run(t, b.begin(t, 2, 0), tasks.Local{Workers: 1}).Graph.Orders
	if o == nil || o.Kept == 0 || o.Behaviour == nil || !o.Behaviour.TooLarge || o.Behaviour.Weight != 0 {
		t.Errorf("orders say %+v", o)
	}
}

// The view is that of the orders, whether what is learned is averaged with the parent's or not.
func TestBehaviourTakesNothingOfTheParent(t *testing.T) {
	race.SkipComputing(t)
	all := randomLinks(300, 3)
	orders := groupedOrders(all, 20, 1)
	view := func(afresh bool) *hybrid.ItemView {
		store := &memstore.Store{}
		var doc *generation.Doc
		for _, n := range []int{len(orders) / 2, len(orders)} {
			log := orderedLogs{logsOf(all, 1, 1), [][]rows.Order{orders[:n]}}
			b := newSetup(store, log.shardLogs, behaviourSettings())
			b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
			b.request.Afresh = afresh
			doc = b.run(t, b.begin(t, 2, 0), tasks.Local{Workers: 2})
		}
		if (doc.AveragedWith == 1) == afresh || doc.Space != 1 {
			t.Fatalf("afresh %t: averaged with %d, in the space %d", afresh, doc.AveragedWith, doc.Space)
		}
		g, err := generation.Open(t.Context(), store, doc, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.Encoder.(*hybrid.Encoder).Views().Behaviour
	}
	averaged, fresh := view(false), view(true)
	if !slices.Equal(averaged.Hashes(), fresh.Hashes()) || !slices.Equal(averaged.Rows(), fresh.Rows()) {
		t.Errorf("%d items have other rows than with nothing of the parent, where there are %d", len(averaged.Hashes()),
			len(fresh.Hashes()))
	}
}
