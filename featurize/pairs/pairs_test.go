package pairs

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// plainOrder is an order as the oracle knows it.
type plainOrder struct {
	items  []int32
	stated int
}

// plainPartners is Partners by a triple loop: over orders, and twice over the items of each.
func plainPartners(orders []plainOrder, items, maxItems int, rule Rule) (all [][]Partner, pairs int64) {
	weight, total := make([]int64, items), int64(0)
	counts := make([][]Partner, items)
	for i := range counts {
		counts[i] = make([]Partner, items)
	}
	for _, o := range orders {
		w := int64(math.Round(math.Exp2(24) * math.Pow(float64(max(1, o.stated)), -0.5)))
		total += w
		for _, i := range o.items {
			weight[i] += w
			for _, j := range o.items {
				if i != j && o.stated <= maxItems {
					counts[i][j].Orders++
					counts[i][j].Weight += w
				}
			}
		}
	}
	all = make([][]Partner, items)
	for i, row := range counts {
		for j, p := range row {
			if p.Orders > 0 {
				pairs++
			}
			if p.Orders == 0 || int(p.Orders) < rule.MinSupport {
				continue
			}
			p.Item, p.Association = int32(j), rule.Measure.association(p.Weight, weight[i], weight[j], total)
			if p.Association >= rule.MinAssociation {
				all[i] = append(all[i], p)
			}
		}
		slices.SortStableFunc(all[i], func(a, b Partner) int { return cmp.Compare(b.Association, a.Association) })
		if rule.MaxPartners > 0 {
			all[i] = all[i][:min(len(all[i]), rule.MaxPartners)]
		}
	}
	return all, pairs
}

// randomOrder draws an order of few items, the first of which are in most.
func randomOrder(r *rand.Rand, items int) plainOrder {
	var o plainOrder
	for range 1 + r.IntN(8) {
		o.items = append(o.items, int32(r.IntN(1+r.IntN(items))))
	}
	slices.Sort(o.items)
	o.items = slices.Compact(o.items)
	o.stated = len(o.items) + r.IntN(3)
	return o
}

// orderOf is an order of items that a fuzzer gives.
func orderOf(given []byte, items int32) plainOrder {
	o := plainOrder{stated: len(given)}
	for _, b := range given {
		o.items = append(o.items, int32(b)%items)
	}
	slices.Sort(o.items)
	o.items = slices.Compact(o.items)
	return o
}

func add(t testing.TB, x *Incidence, o plainOrder) int32 {
	t.Helper()
	number, err := x.Add(o.items, o.stated)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

var rules = []Rule{{}, {Measure: NPMI, MinSupport: 2, MinAssociation: 0.1, MaxPartners: 5}, {Measure: Lift,
	MinAssociation: 1}, {Measure: Cosine, MinSupport: 3, MaxPartners: 2}, {Measure: Jaccard, MinAssociation: 0.05}}

func equal(t *testing.T, x *Incidence, orders []plainOrder, maxItems int) {
	t.Helper()
	for _, rule := range rules {
		want, pairs := plainPartners(orders, x.Items(), maxItems, rule)
		for _, workers := range []int{1, 4} {
			c := x.NewCounters(workers)
			got := append(c.Partners(0, x.Items()/3, rule), c.Partners(x.Items()/3, x.Items(), rule)...)
			if counted := c.Counted(); counted != pairs {
				t.Fatalf("%d pairs were counted, not %d", counted, pairs)
			}
			for i := range got {
				if len(got[i]) == 0 && len(want[i]) == 0 {
					continue
				}
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("%+v: partners of %d are %v, not %v", rule, i, got[i], want[i])
				}
			}
		}
	}
}

func TestPartnersAreThoseOfATripleLoop(t *testing.T) {
	const items, maxItems = 40, 7
	r := rand.New(rand.NewPCG(1, 2))
	x := New(items, maxItems)
	var orders []plainOrder
	lines := 0
	for range 300 {
		orders = append(orders, randomOrder(r, items))
		o := orders[len(orders)-1]
		lines += len(o.items)
		add(t, x, o)
	}
	if x.Orders() != len(orders) || x.Lines() != lines {
		t.Errorf("%d orders and %d lines, not %d and %d", x.Orders(), x.Lines(), len(orders), lines)
	}
	equal(t, x, orders, maxItems)
}

func TestAnOrderTakenBackLeavesNoTrace(t *testing.T) {
	const items = 30
	r := rand.New(rand.NewPCG(3, 4))
	x, never := New(items, 0), New(items, 0)
	var gone []int32
	var left []plainOrder
	for k := range 200 {
		o := randomOrder(r, items)
		number := add(t, x, o)
		if k%3 == 0 {
			gone = append(gone, number)
			continue
		}
		left = append(left, o)
		add(t, never, o)
	}
	for _, number := range gone {
		x.Remove(number)
	}
	equal(t, x, left, DefaultMaxItems)
	for k := range gone { // their numbers are given to others
		o := randomOrder(r, items)
		left = append(left, o)
		add(t, x, o)
		add(t, never, o)
		if k%10 == 0 {
			equal(t, x, left, DefaultMaxItems)
		}
	}
	if !reflect.DeepEqual(x.weight, never.weight) || x.total != never.total || x.Lines() != never.Lines() ||
		x.Orders() != never.Orders() {
		t.Error("weights differ from those of orders that were never taken back")
	}
}

func TestALargeOrderCountsForItsItemsAlone(t *testing.T) {
	anything := Rule{MinAssociation: -2}
	x := New(3, 2)
	add(t, x, plainOrder{[]int32{0, 1, 2}, 3})
	add(t, x, plainOrder{[]int32{0, 1}, 3}) // states an item that has no number
	if got := x.NewCounter().Partners(0, anything, nil); len(got) > 0 {
		t.Errorf("orders of 3 items have pairs: %v", got)
	}
	add(t, x, plainOrder{[]int32{0, 1}, 2})
	got := x.NewCounter().Partners(0, anything, nil)
	if len(got) != 1 || got[0].Item != 1 || got[0].Orders != 1 || got[0].Weight != weightOf(2) {
		t.Errorf("partners are %v", got)
	}
	if x.Support(0) != 3 || x.Support(2) != 1 {
		t.Errorf("supports are %d and %d, not 3 and 1", x.Support(0), x.Support(2))
	}
}

func TestMeasures(t *testing.T) {
	// Of 8 orders of equal weight, 4 have a, 2 have b and 2 have both.
	for m, want := range map[Measure]float64{NPMI: math.Log(2) / math.Log(4), "": 0.5, Lift: 2, Cosine: math.Sqrt(0.5),
		Jaccard: 0.5} {
		if got := m.association(2, 4, 2, 8); math.Abs(got-want) > 1e-12 {
			t.Errorf("%q is %g, not %g", m, got, want)
		}
	}
	if got := NPMI.association(8, 8, 8, 8); got != 1 {
		t.Errorf("items of all orders have %g, not 1", got)
	}
	if _, err := ParseMeasure("pmi"); err == nil {
		t.Error("pmi is taken for a measure")
	}
	for _, name := range MeasureNames() {
		if m, err := ParseMeasure(name); err != nil || string(m) != name {
			t.Errorf("%q: %q, %v", name, m, err)
		}
	}
}

func TestBadItemsAreRefused(t *testing.T) {
	x := New(3, 0)
	for _, items := range [][]int32{{3}, {-1}, {1, 1}, {2, 1}} {
		if _, err := x.Add(items, len(items)); err == nil {
			t.Errorf("%v were taken", items)
		}
	}
	if x.Orders() != 0 || x.Lines() != 0 || x.total != 0 {
		t.Error("refused orders have left something")
	}
}

// FuzzPairs adds and takes back orders as the bytes say, and compares with the triple loop.
func FuzzPairs(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 0, 2, 1, 1, 2, 7, 9})
	f.Add([]byte{1, 0, 1, 0, 0, 0, 0, 1, 4, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, ops []byte) {
		const items, maxItems = 12, 4
		x := New(items, maxItems)
		live := map[int32]plainOrder{}
		for len(ops) > 1 && len(ops) < 400 {
			n, of := int(ops[0]%7), ops[1:]
			if n == 0 { // take back the order of that number, if there is one
				number := int32(of[0])
				if _, ok := live[number]; ok {
					x.Remove(number)
					delete(live, number)
				}
				ops = of[1:]
				continue
			}
			n = min(n, len(of))
			o := orderOf(of[:n], items)
			number := add(t, x, o)
			if _, used := live[number]; used {
				t.Fatalf("number %d was given twice", number)
			}
			live[number], ops = o, of[n:]
		}
		var orders []plainOrder
		for _, o := range live {
			orders = append(orders, o)
		}
		equal(t, x, orders, maxItems)
	})
}

// Where pairs come again, those of many orders count; where hardly any does, all do.
func TestSettle(t *testing.T) {
	const items = 300
	rule := Rule{Measure: Cosine, MaxPartners: 30}
	r := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct {
		orders, size, want int
	}{{10, 2, 1}, {2000, 3, 1}, {9000, 3, 2}, {40_000, 3, 3}, {2000, 40, 3}} {
		x := New(items, 0)
		for range c.orders {
			var o plainOrder
			for range c.size {
				o.items = append(o.items, int32(r.IntN(items)))
			}
			slices.Sort(o.items)
			o.items = slices.Compact(o.items)
			if _, err := x.Add(o.items, len(o.items)); err != nil {
				t.Fatal(err)
			}
		}
		got := x.Settle(rule, 2)
		if got.MinSupport != c.want || got.MaxPartners != rule.MaxPartners {
			t.Errorf("%d orders of %d: %+v, want a support of %d", c.orders, c.size, got, c.want)
		}
		if one := x.Settle(rule, 1); one != got {
			t.Errorf("one goroutine: %+v, two %+v", one, got)
		}
		if stated := (Rule{MinSupport: 7}); x.Settle(stated, 1) != stated {
			t.Error("a stated support is changed")
		}
	}
	if got := New(5, 0).Settle(rule, 1); got.MinSupport != mostSupport {
		t.Errorf("without orders: %+v", got)
	}
}
