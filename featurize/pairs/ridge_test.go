package pairs

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"
)

// plainRidge is what Ridges returns of one item: the matrix of all items, counted order by order, and the inverse of
// what the partners have of it.
func plainRidge(orders []plainOrder, item, items, maxItems int, o Ridge) (hints []Hint) {
	all, _ := plainPartners(orders, items, maxItems, Rule{Measure: Cosine, MaxPartners: o.Partners})
	gram := mat.NewDense(items, items, nil)
	for _, order := range orders {
		w := float64(weightOf(order.stated)) / unit
		for _, i := range order.items {
			for _, j := range order.items {
				if i == j || order.stated <= maxItems {
					gram.Set(int(i), int(j), gram.At(int(i), int(j))+w)
				}
			}
		}
	}
	n := len(all[item])
	if n == 0 {
		return nil
	}
	of, with := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	for a, p := range all[item] {
		with.SetVec(a, gram.At(int(p.Item), item))
		for b, q := range all[item] {
			of.Set(a, b, gram.At(int(p.Item), int(q.Item)))
		}
		of.Set(a, a, of.At(a, a)+o.Penalty)
	}
	if err := of.Inverse(of); err != nil {
		panic(err)
	}
	with.MulVec(of, with)
	for a, p := range all[item] {
		if w := with.AtVec(a); w > 0 {
			hints = append(hints, Hint{p.Item, p.Orders, w})
		}
	}
	slices.SortFunc(hints, func(a, b Hint) int { return int(math.Copysign(1, b.Weight-a.Weight)) })
	return hints[:min(len(hints), o.Keep)]
}

// likePlain compares the hints of all items with those of plainRidge. Of equal weights, rounding may put any first.
func likePlain(t *testing.T, x *Incidence, orders []plainOrder, maxItems int, o Ridge) {
	t.Helper()
	items := make([]int32, x.Items())
	for i := range items {
		items[i] = int32(i)
	}
	const near = 1e-9
	for i, got := range x.NewCounters(2).Ridges(items, o) {
		want := plainRidge(orders, i, x.Items(), maxItems, o)
		if len(got) > len(want)+1 || len(got) < len(want)-1 { // a weight of 0 may come out as one of rounding
			t.Fatalf("%+v: item %d has the hints %v, not %v", o, i, got, want)
		}
		for k := range min(len(got), len(want)) {
			if math.Abs(got[k].Weight-want[k].Weight) > near {
				t.Fatalf("%+v: item %d has the hints %v, not %v", o, i, got, want)
			}
		}
		of := map[int32]Hint{}
		for _, h := range want {
			of[h.Partner] = h
		}
		for _, h := range got {
			w, ok := of[h.Partner]
			if ok && (w.Orders != h.Orders || math.Abs(w.Weight-h.Weight) > near) {
				t.Fatalf("%+v: item %d has the hint %v, not %v", o, i, h, w)
			}
			if !ok && len(want) > 0 && h.Weight > want[len(want)-1].Weight+near {
				t.Fatalf("%+v: item %d has the hint %v, and not %v", o, i, h, want)
			}
		}
	}
}

func TestRidgeIsThatOfTheDenseInverse(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		items, orders int
		o             Ridge
	}{{40, 300, Ridge{Partners: 40, Penalty: 5, Keep: 40}}, {40, 300, Ridge{Partners: 9, Penalty: 0.5, Keep: 4}},
		{30, 8, DefaultRidge}, {5, 1, DefaultRidge}, {1, 3, DefaultRidge}, {6, 0, DefaultRidge}, {0, 0, DefaultRidge}} {
		const maxItems = 7
		x := New(c.items, maxItems)
		var orders []plainOrder
		for range c.orders {
			orders = append(orders, randomOrder(r, c.items))
			add(t, x, orders[len(orders)-1])
		}
		likePlain(t, x, orders, maxItems, c.o)
	}
}

// Of items that always come together, one says all, and a third that comes with them says nothing beyond.
func TestAHintIsWhatOthersDoNotSay(t *testing.T) {
	x := New(4, 0)
	for range 50 {
		add(t, x, plainOrder{[]int32{0, 1}, 2})
		add(t, x, plainOrder{[]int32{0, 1, 2}, 3})
		add(t, x, plainOrder{[]int32{3}, 1})
	}
	got := x.NewCounters(1).Ridges([]int32{0, 3}, Ridge{Partners: 3, Penalty: 1, Keep: 3})
	if len(got[0]) == 0 || got[0][0].Partner != 1 || got[0][0].Weight < 0.9 || got[0][0].Orders != 100 {
		t.Errorf("hints of item 0 are %v", got[0])
	}
	for _, h := range got[0][1:] {
		if h.Weight > 0.05 {
			t.Errorf("item 2 says nothing that item 1 does not, and has %v", h)
		}
	}
	if len(got[1]) > 0 {
		t.Errorf("an item that comes alone has the hints %v", got[1])
	}
}

// An item's hints have the same bits for any number of goroutines, and whatever items they are asked for with.
func TestRidgesAreAFunctionOfTheOrders(t *testing.T) {
	const items = 300
	r := rand.New(rand.NewPCG(9, 10))
	x := New(items, 0)
	for range 2000 {
		add(t, x, randomOrder(r, items))
	}
	all := make([]int32, items)
	for i := range all {
		all[i] = int32(i)
	}
	want := x.NewCounters(1).Ridges(all, DefaultRidge)
	if got := x.NewCounters(5).Ridges(all, DefaultRidge); !reflect.DeepEqual(got, want) {
		t.Error("five goroutines have other hints")
	}
	counters := x.NewCounters(3)
	for i := items - 1; i >= 0; i -= 7 {
		part := []int32{int32(i), int32((i + 11) % items)}
		got := counters.Ridges(part, DefaultRidge)
		if !reflect.DeepEqual(got, [][]Hint{want[part[0]], want[part[1]]}) {
			t.Fatalf("items %v have other hints alone", part)
		}
	}
}

// Portions of any size give each item what Ridges gives it.
func TestAllRidgesAreThoseOfPortions(t *testing.T) {
	const items = 3000
	r := rand.New(rand.NewPCG(11, 12))
	x := New(items, 0)
	for range 6000 {
		add(t, x, randomOrder(r, items))
	}
	all := numbers(0, items)
	want := x.NewCounters(2).Ridges(all, DefaultRidge)
	for _, bytes := range []int64{1, 1 << 20, 256 << 20} {
		seen := 0
		for item, hints := range x.NewCounters(2).AllRidges(all, DefaultRidge, bytes) {
			if item != all[seen] || !reflect.DeepEqual(hints, want[seen]) {
				t.Fatalf("%d bytes: item %d has other hints at place %d", bytes, item, seen)
			}
			seen++
		}
		if seen != items {
			t.Errorf("%d bytes: %d items", bytes, seen)
		}
	}
	for range x.NewCounters(1).AllRidges(all, DefaultRidge, 1) {
		break // a caller may end early
	}
}

// FuzzRidge compares with the dense inverse, of orders as the bytes say.
func FuzzRidge(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 2, 1, 2, 2, 7, 9})
	f.Add([]byte{1, 0, 1, 0, 4, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, ops []byte) {
		const items, maxItems = 12, 4
		x := New(items, maxItems)
		var orders []plainOrder
		for len(ops) > 1 && len(ops) < 400 {
			n, of := int(ops[0]%7), ops[1:]
			n = min(n, len(of))
			o := orderOf(of[:n], items)
			add(t, x, o)
			orders, ops = append(orders, o), of[n:]
		}
		likePlain(t, x, orders, maxItems, Ridge{Partners: 8, Penalty: 2, Keep: 5})
	})
}

// BenchmarkRidges computes the hints of the items of orders of a million lines of a hundred thousand items, a block at
// a time, on one goroutine.
func BenchmarkRidges(b *testing.B) {
	const items, lines, share = 100_000, 1_000_000, 1 << 12
	x := drawn(b, lines, items)
	var asked []int32
	for i := range int32(items) {
		if x.Support(i) > 0 {
			asked = append(asked, i)
		}
	}
	for range b.N {
		counters, hints, began := x.NewCounters(1), 0, time.Now()
		for part := range slices.Chunk(asked, share) {
			for _, of := range counters.Ridges(part, DefaultRidge) {
				hints += len(of)
			}
		}
		b.ReportMetric(time.Since(began).Seconds()*1e3/float64(len(asked)), "ms/item")
		b.ReportMetric(float64(hints)/float64(len(asked)), "hints/item")
	}
}
