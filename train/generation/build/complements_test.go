package build

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/pairs"
	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// buildOf builds a generation of nodes and orders, which are dealt out to two shards.
func buildOf(t *testing.T, all []rows.Row, orders []rows.Order, partitions int, memory int64, engine tasks.Engine) (
	*memstore.Store, *generation.Doc) {
	t.Helper()
	s := settings()
	s.FromOrders = &fit.FromOrders{Measure: pairs.Cosine, MinSupport: 2, MinAssociation: 0.05, MaxPartners: 6}
	half := len(orders) / 2
	log := orderedLogs{logsOf(all, 2, 1), [][]rows.Order{orders[:half], orders[half:]}}
	store := &memstore.Store{}
	b := newSetup(store, log.shardLogs, s)
	b.worker.MemoryLimit = memory
	b.worker.Log = func(context.Context, map[int]int64) (work.Log, error) { return log, nil }
	return store, b.run(t, b.begin(t, partitions, 0), engine)
}

func complementsOf(t *testing.T, store sink.Store, doc *generation.Doc) (all []generation.Complement) {
	t.Helper()
	for c, err := range generation.Complements(t.Context(), store, doc) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// wantedComplements are the ridges of all nodes, numbered in the order of their hashes.
func wantedComplements(t *testing.T, all []rows.Row, orders []rows.Order) (want []generation.Complement) {
	t.Helper()
	var ids []string
	number := map[string]int32{}
	for _, row := range all {
		ids = append(ids, row.NodeID)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(graph.HashOf(a), graph.HashOf(b)) })
	items := make([]int32, len(ids))
	for i, id := range ids {
		number[id], items[i] = int32(i), int32(i)
	}
	x := pairs.New(len(ids), 0)
	for _, o := range orders {
		var of []int32
		for _, id := range o.Items {
			if i, ok := number[id]; ok && !o.Deleted {
				of = append(of, i)
			}
		}
		slices.Sort(of)
		if _, err := x.Add(of, len(o.Items)); err != nil {
			t.Fatal(err)
		}
	}
	for i, hints := range x.NewCounters(1).Ridges(items, pairs.DefaultRidge) {
		for _, h := range hints {
			want = append(want, generation.Complement{Item: ids[i], Partner: ids[h.Partner], Score: float32(h.Weight),
				Support: h.Orders})
		}
	}
	slices.SortFunc(want, func(a, b generation.Complement) int {
		return cmp.Or(strings.Compare(a.Item, b.Item), cmp.Compare(b.Score, a.Score),
			strings.Compare(a.Partner, b.Partner))
	})
	return want
}

// What goes with what is the ridges of all orders: with the same bytes for any number of workers and partitions and any
// memory, in a file that the document names.
func TestComplementsAreTheRidgesOfTheOrders(t *testing.T) {
	race.SkipComputing(t)
	all := classed(graphtest.Rows(400, 8), 8)
	orders := randomOrders(all, 8, 1)
	want := wantedComplements(t, all, orders)
	var first generation.File
	for _, c := range []struct {
		partitions int
		memory     int64
		engine     tasks.Engine
	}{{1, 0, tasks.Local{Workers: 1}}, {1, 0, tasks.Local{Workers: 1}}, {8, 0, shuffled{1}},
		{8, 4 << 20, tasks.Local{Workers: 2}}} {
		store, doc := buildOf(t, all, orders, c.partitions, c.memory, c.engine)
		got := complementsOf(t, store, doc)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %d rows, %.10v; want %d rows, %.10v", c, len(got), got, len(want), want)
		}
		file := doc.Files[generation.GoesWithName]
		if first == (generation.File{}) {
			first = file
		}
		if file != first || file.Bytes == 0 {
			t.Errorf("%+v: %+v, want %+v", c, file, first)
		}
		if s := doc.GoesWith; s == nil || s.Rows != int64(len(want)) || s.Items < 200 || s.Items > len(all) {
			t.Errorf("%+v: the document says %+v of %d rows", c, s, len(want))
		}
	}
}

// Rows that are damaged are damage of the generation; one that was built without orders says so.
func TestComplementsThatCannotBeRead(t *testing.T) {
	race.SkipComputing(t)
	all := graphtest.Rows(60, 4)
	store, doc := buildOf(t, all, randomOrders(all, 4, 3), 1, 0, tasks.Local{Workers: 1})
	key := generation.Prefix(doc.Generation) + generation.GoesWithName
	if err := sink.PutBytes(t.Context(), store, key, make([]byte, doc.Files[generation.GoesWithName].Bytes)); err != nil {
		t.Fatal(err)
	}
	for _, err := range generation.Complements(t.Context(), store, doc) {
		if !errors.Is(err, generation.ErrDamaged) {
			t.Errorf("a damaged file: %v", err)
		}
	}
	delete(doc.Files, generation.GoesWithName)
	for _, err := range generation.Complements(t.Context(), store, doc) {
		if !errors.Is(err, generation.ErrNoOrders) {
			t.Errorf("a generation without orders: %v", err)
		}
	}
}

// Orders of single items, of unknown ones and a single order leave a file, and a build that ends.
func TestFewOrders(t *testing.T) {
	race.SkipComputing(t)
	all := graphtest.Rows(60, 4)
	for name, c := range map[string]struct {
		orders []rows.Order
		rows   int
	}{
		"none":         {nil, 0},
		"unknown":      {[]rows.Order{{OrderID: "a", Items: []string{"no node", "none either"}}}, 0},
		"single items": {[]rows.Order{{OrderID: "a", Items: []string{all[0].NodeID}}}, 0},
		"one order":    {[]rows.Order{{OrderID: "a", Items: []string{all[0].NodeID, all[1].NodeID}}}, 2},
	} {
		store, doc := buildOf(t, all, c.orders, 1, 0, tasks.Local{Workers: 1})
		if got := complementsOf(t, store, doc); len(got) != c.rows || doc.GoesWith.Rows != int64(c.rows) {
			t.Errorf("%s: %v, %+v", name, got, doc.GoesWith)
		}
	}
}
