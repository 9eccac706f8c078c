package build

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/pairs"
	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// orderedLogs is a commit log with orders, by shard.
type orderedLogs struct {
	shardLogs
	orders [][]rows.Order
}

func (l orderedLogs) Size(ctx context.Context) (stages.Size, error) {
	s, err := l.shardLogs.Size(ctx)
	s.Orders = true
	return s, err
}

func (l orderedLogs) Orders(_ context.Context, shard int) iter.Seq2[rows.Order, error] {
	return func(yield func(rows.Order, error) bool) {
		for _, o := range l.orders[shard] {
			if !yield(o, nil) {
				return
			}
		}
	}
}

// randomOrders are orders of items of one topic, most of which are nodes, with some that are deleted and one that is
// too large to count.
func randomOrders(all []rows.Row, topics int, seed uint64) (orders []rows.Order) {
	r := rand.New(rand.NewPCG(seed, 7))
	for k := range 3 * len(all) {
		o := rows.Order{OrderID: fmt.Sprintf("order-%d", k), Deleted: k%41 == 40}
		topic := r.IntN(topics)
		for range 1 + r.IntN(6) {
			o.Items = append(o.Items, all[(r.IntN(len(all)/topics/2)*topics+topic)%len(all)].NodeID)
		}
		if k%7 == 0 {
			o.Items = append(o.Items, "no node")
		}
		o.Items = slices.Compact(slices.Sorted(slices.Values(o.Items)))
		orders = append(orders, o)
	}
	large := rows.Order{OrderID: "large"}
	for k := range pairs.DefaultMaxItems + 1 {
		large.Items = append(large.Items, fmt.Sprintf("part-%05d", k))
	}
	for _, row := range all[:9] {
		large.Items = append(large.Items, row.NodeID)
	}
	slices.Sort(large.Items)
	return append(orders, large)
}

// linkedBy returns the rows with links to what the orders have beside them, counted in the plainest way.
func linkedBy(all []rows.Row, orders []rows.Order, o fit.FromOrders) []rows.Row {
	nodes := map[string]bool{}
	for _, row := range all {
		nodes[row.NodeID] = true
	}
	single, both, support, total := map[string]int64{}, map[[2]string]int64{}, map[[2]string]int{}, int64(0)
	for _, order := range orders {
		w := int64(math.Round((1 << 24) / math.Sqrt(float64(len(order.Items)))))
		if order.Deleted {
			continue
		}
		total += w
		for _, i := range order.Items {
			single[i] += w
			for _, j := range order.Items {
				if i != j && nodes[i] && nodes[j] && len(order.Items) <= pairs.DefaultMaxItems {
					both[[2]string{i, j}] += w
					support[[2]string{i, j}]++
				}
			}
		}
	}
	type partner struct {
		id    string
		score float64
	}
	partners, linked := map[string][]partner{}, map[[2]string]bool{}
	for p, w := range both {
		score := float64(w) / math.Sqrt(float64(single[p[0]])*float64(single[p[1]]))
		if support[p] >= o.MinSupport && score >= o.MinAssociation {
			partners[p[0]] = append(partners[p[0]], partner{p[1], score})
		}
	}
	for i, of := range partners {
		slices.SortFunc(of, func(a, b partner) int { // positions go by the hash
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(graph.HashOf(a.id), graph.HashOf(b.id)))
		})
		for _, p := range of[:min(len(of), o.MaxPartners)] {
			linked[[2]string{i, p.id}], linked[[2]string{p.id, i}] = true, true
		}
	}
	out := slices.Clone(all)
	for k := range out {
		labels := map[string]bool{}
		for _, l := range out[k].Labels {
			labels[l] = true
		}
		for l := range linked {
			if l[0] == out[k].NodeID {
				labels[l[1]] = true
			}
		}
		out[k].Labels = slices.Sorted(maps.Keys(labels))
	}
	return out
}

// A generation of orders is, but for what it says of its input, the one of a graph whose edges state what goes
// together: for any number of workers and partitions, with hidden links.
func TestOrdersLinkAsEdgesDo(t *testing.T) {
	race.SkipComputing(t)
	const topics, shards = 8, 3
	settings := settings()
	settings.FromOrders = &fit.FromOrders{Measure: pairs.Cosine, MinSupport: 2, MinAssociation: 0.05, MaxPartners: 6}
	all := classed(graphtest.Rows(400, topics), topics)
	orders := randomOrders(all, topics, 1)
	dealt := make([][]rows.Order, shards)
	for k, o := range orders {
		dealt[k%shards] = append(dealt[k%shards], o)
	}
	build := func(log work.Log, partitions int, engine tasks.Engine) (map[string][32]byte, *generation.Doc) {
		store := &memstore.Store{}
		b := newSetup(store, make(shardLogs, shards), settings)
		b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
		doc := b.run(t, b.begin(t, partitions, 0), engine)
		sums := digests(t, store)
		for key := range sums {
			if strings.HasSuffix(key, "generation.json") || strings.Contains(key, "/dataset/") ||
				strings.HasSuffix(key, generation.GoesWithName) {
				delete(sums, key) // the input and the stated labels differ
			}
		}
		return sums, doc
	}
	logs := logsOf(all, shards, 1)
	for _, partitions := range []int{1, 8} {
		want, plain := build(logsOf(linkedBy(all, orders, *settings.FromOrders), shards, 1), partitions,
			tasks.Local{Workers: 1})
		for name, engine := range map[string]tasks.Engine{"1 worker": tasks.Local{Workers: 1}, "shuffled": shuffled{1}} {
			got, doc := build(orderedLogs{logs, dealt}, partitions, engine)
			same(t, fmt.Sprintf("%d partitions, %s", partitions, name), want, got)
			if plain.Graph.Orders != nil || doc.Graph.Orders == nil {
				t.Fatalf("orders without and with orders: %v, %v", plain.Graph.Orders, doc.Graph.Orders)
			}
			s := *doc.Graph.Orders
			if doc.Graph.Links != plain.Graph.Links || doc.Graph.Hidden != plain.Graph.Hidden {
				t.Errorf("the graph is %+v, not %+v", doc.Graph, plain.Graph)
			}
			if s.Large != 1 || s.Unknown < 100 || s.Kept < 400 || s.Kept > s.Pairs || s.Items < 200 ||
				len(s.Partners) == 0 || s.Partners[0].Items > s.Items {
				t.Errorf("orders say %+v", s)
			}
		}
	}
}

// Neither partitions nor ranges of labels change what is made of orders and of labels that are stated, some of them
// twice.
func TestDivisionChangesNoOrders(t *testing.T) {
	race.SkipComputing(t)
	all := randomLinks(400, 3)
	orders := randomOrders(all, 8, 2)
	var want map[string][32]byte
	for _, c := range []struct {
		partitions, ranges int
		spread             bool
	}{{1, 1, false}, {16, 8, false}, {16, 8, true}} {
		log := orderedLogs{logsOf(all, 2, 1), [][]rows.Order{orders[:100], orders[100:]}}
		s := settings()
		s.FromOrders = &fit.FromOrders{Measure: pairs.Jaccard, MinSupport: 2, MinAssociation: 0.02, MaxPartners: 8}
		store := &memstore.Store{}
		b := newSetup(store, log.shardLogs, s)
		b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) {
			return orderedRanges{log, ranged{log.shardLogs, c.ranges, c.spread}}, nil
		}
		plan := b.begin(t, c.partitions, 0)
		if plan.Spread != c.spread || plan.Ranges != c.ranges || !plan.Orders {
			t.Fatalf("%+v: plan %+v", c, plan)
		}
		b.run(t, plan, tasks.Local{Workers: 2})
		got := digests(t, store)
		for key := range got {
			if strings.Contains(key, "/part-") || strings.HasSuffix(key, "generation.json") {
				delete(got, key)
			}
		}
		if want == nil {
			want = got
		}
		for key, sum := range want {
			if got[key] != sum {
				t.Errorf("%+v: %s differs", c, key)
			}
		}
	}
}

// A build that settles the support says which it took, and links what a build with that support links.
func TestOrdersThatRarelyComeAgain(t *testing.T) {
	all := randomLinks(200, 3)
	log := orderedLogs{logsOf(all, 1, 1), [][]rows.Order{randomOrders(all, 3, 2)}}
	docs := map[int]*generation.Doc{}
	for support := range 4 {
		s := settings()
		s.FromOrders = &fit.FromOrders{Measure: pairs.Cosine, MinSupport: support, MaxPartners: 30}
		b := newSetup(&memstore.Store{}, log.shardLogs, s)
		b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
		docs[support] = b.run(t, b.begin(t, 2, 0), tasks.Local{Workers: 2})
	}
	settled := docs[0].Graph
	took := settled.Orders.MinSupport
	if took < 1 || took > 2 || settled.Links != docs[took].Graph.Links || settled.Links == docs[3].Graph.Links {
		t.Errorf("%d links settled at %d; stated: %d at 1, %d at 2, %d at 3", settled.Links, took, docs[1].Graph.Links,
			docs[2].Graph.Links, docs[3].Graph.Links)
	}
}

// orderedRanges is a log with orders that asks for so many ranges of labels.
type orderedRanges struct {
	orderedLogs
	size ranged
}

func (l orderedRanges) Size(ctx context.Context) (stages.Size, error) {
	s, err := l.size.Size(ctx)
	s.Orders = true
	return s, err
}

// Without orders, and without partners, a plan has no stage for them, and the document does not name them.
func TestABuildWithoutOrders(t *testing.T) {
	for _, partners := range []int{0, 5} {
		s := settings()
		s.FromOrders = &fit.FromOrders{Measure: pairs.NPMI, MinSupport: 1, MaxPartners: partners}
		b := newSetup(&memstore.Store{}, logsOf(graphtest.Rows(50, 4), 1, 1), s)
		if partners == 0 {
			log := orderedLogs{logsOf(graphtest.Rows(50, 4), 1, 1), make([][]rows.Order, 1)}
			b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
		}
		plan := b.begin(t, 1, 0)
		if _, ok := plan.Find(stages.Orders); ok || plan.Orders {
			t.Errorf("%d partners: the plan has a stage for orders", partners)
		}
		doc, err := generation.Load(t.Context(), b.worker.Store, 1)
		if err != nil {
			t.Fatal(err)
		}
		if (doc.Settings.FromOrders != nil) != (partners == 0) {
			t.Errorf("%d partners: the settings of orders are %+v", partners, doc.Settings.FromOrders)
		}
	}
}

// Orders that do not fit into the memory are refused with what can be done about it.
func TestOrdersBeyondTheMemory(t *testing.T) {
	all := graphtest.Rows(200, 4)
	s := settings()
	s.FromOrders = &fit.FromOrders{Measure: pairs.Cosine, MinSupport: 1, MaxPartners: 5}
	b := newSetup(&memstore.Store{}, logsOf(all, 1, 1), s)
	log := orderedLogs{logsOf(all, 1, 1), [][]rows.Order{randomOrders(all, 4, 1)}}
	b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
	b.worker.MemoryLimit = 20000
	_, err := b.worker.Run(t.Context(), b.begin(t, 1, 0), tasks.Local{Workers: 1}, b.worker, nil, stages.Finish)
	if err == nil || !strings.Contains(err.Error(), "links.from_orders.max_partners: 0") {
		t.Errorf("error %v", err)
	}
}
