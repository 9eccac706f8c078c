package pairs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"
)

// history is a Live whose orders change by chance, and what has to come of it. Items have names, by which they are
// told apart where all else is equal, and numbers in the order in which they were first met.
type history struct {
	*Live
	t      *testing.T
	r      *rand.Rand
	names  []int         // by number
	number map[int]int32 // by name
	absent map[int]bool  // names of items that do not count
	orders map[string]map[int]int64
	placed map[string]uint64 // by whom each order was
	clock  int64
	// associated counts the associations that were compared.
	associated int
	hints      map[int32][]Hint // the newest
}

var liveRidge = Ridge{Partners: 6, Penalty: 2, Keep: 4}

const (
	liveItems    = 40 // names
	liveMaxItems = 6
)

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, r: rand.New(rand.NewPCG(seed, 1)), number: map[int]int32{}, absent: map[int]bool{},
		orders: map[string]map[int]int64{}, placed: map[string]uint64{}, hints: map[int32][]Hint{}}
	h.Live = NewLive(liveRidge, liveMaxItems,
		func(a, b int32) int { return cmp.Compare(h.names[a], h.names[b]) },
		func(item int32) bool { return !h.absent[h.names[item]] })
	return h
}

// set states an order in full.
func (h *history) set(key string, times map[int]int64) {
	var lines []Line
	names := slices.Sorted(maps.Keys(times))
	h.r.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
	for _, name := range names {
		number, known := h.number[name]
		if !known {
			number = int32(len(h.names))
			h.number[name], h.names = number, append(h.names, name)
		}
		lines = append(lines, Line{number, times[name]})
	}
	h.Grow(len(h.names))
	customer, known := h.placed[key]
	if !known {
		customer = uint64(h.r.IntN(40))
	}
	if err := h.Set(key, customer, lines); err != nil {
		h.t.Fatal(err)
	}
	h.orders[key], h.placed[key] = times, customer
}

// step changes something.
func (h *history) step() {
	key := fmt.Sprint("order ", h.r.IntN(60))
	switch n := h.r.IntN(20); {
	case n < 3:
		h.Delete(key)
		delete(h.orders, key)
	case n < 4:
		h.clock += int64(h.r.IntN(12))
		passed := func(time int64) bool { return time <= h.clock }
		if err := h.Expire(passed); err != nil {
			h.t.Fatal(err)
		}
		for _, times := range h.orders {
			maps.DeleteFunc(times, func(_ int, time int64) bool { return passed(time) })
		}
	case n < 5:
		name := h.r.IntN(liveItems)
		h.absent[name] = !h.absent[name]
		h.Outdate()
	case n < 6 && h.orders[key] != nil: // other times, the same items
		times, spread := maps.Clone(h.orders[key]), 1+h.r.IntN(2)*30
		for name := range times {
			times[name] = h.clock + 15 + int64(h.r.IntN(spread))
		}
		h.set(key, times)
	default:
		times, at := map[int]int64{}, h.clock+1+int64(h.r.IntN(30))
		topic := h.r.IntN(4)
		if h.r.IntN(4) == 0 {
			delete(h.placed, key)
		}
		for range h.r.IntN(9) {
			times[h.r.IntN(liveItems/4)*4+topic] = at
			at += int64(h.r.IntN(3) / 2)
		}
		h.set(key, times)
	}
}

// solve takes the next items, and returns them.
func (h *history) solve(most int) []int32 {
	items, hints := h.Solve(most)
	for k, i := range items {
		h.hints[i] = hints[k]
	}
	return items
}

// fresh returns the hints of an Incidence of the orders that stand, by name, which is what its items are numbered by.
func (h *history) fresh() [][]Hint {
	x := New(liveItems, liveMaxItems)
	for _, key := range slices.Sorted(maps.Keys(h.orders)) {
		times := h.orders[key]
		var items []int32
		for _, name := range slices.Sorted(maps.Keys(times)) {
			if !h.absent[name] {
				items = append(items, int32(name))
			}
		}
		add(h.t, x, plainOrder{items, len(times)})
	}
	all := make([]int32, liveItems)
	for i := range all {
		all[i] = int32(i)
	}
	return x.NewCounters(2).Ridges(all, liveRidge)
}

// named returns the newest hints of an item, by the names of partners.
func (h *history) named(item int32) (hints []Hint) {
	for _, hint := range h.hints[item] {
		hint.Partner = int32(h.names[hint.Partner])
		hints = append(hints, hint)
	}
	return hints
}

// Whatever has happened to orders, once all items have had their turn the hints are those of the orders that stand.
func TestSettledHintsHaveNoHistory(t *testing.T) {
	for seed := range uint64(30) {
		h := newHistory(t, seed)
		some := 0
		for n := range 400 {
			h.step()
			if h.r.IntN(3) == 0 {
				h.solve(h.r.IntN(20))
			}
			if n%80 != 79 {
				continue
			}
			for !h.Settled() {
				h.solve(1 + h.r.IntN(30))
			}
			if items := h.solve(10); len(items) > 0 || h.Changed() > 0 {
				t.Fatalf("seed %d: items %v had no turn before all was settled", seed, items)
			}
			want := h.fresh()
			for number, name := range h.names {
				if got := h.named(int32(number)); !reflect.DeepEqual(got, slices.Clip(want[name])) &&
					len(got)+len(want[name]) > 0 {
					t.Fatalf("seed %d, step %d: hints of %d are %v, not %v", seed, n, name, got, want[name])
				}
				some += len(want[name])
			}
			h.compareAssociations(seed)
			if lines := h.x.Lines(); h.lines() != lines || len(h.times) > h.Orders() {
				t.Fatalf("seed %d: %d lines are held of %d, times of %d orders", seed, lines, h.lines(), len(h.times))
			}
		}
		if some == 0 {
			t.Fatal("no hints were compared")
		}
		if h.associated == 0 {
			t.Fatal("no associations were compared")
		}
	}
}

// compareAssociations compares what all items are associated with to what the orders that stand say, and those of each
// customer together, by names.
func (h *history) compareAssociations(seed uint64) {
	const most = 7
	together := map[uint64]map[int]int64{}
	orders, customers := New(liveItems, liveMaxItems), New(liveItems, liveMaxItems)
	for _, x := range []*Incidence{orders, customers} {
		x.counts = func(name int32) bool { return !h.absent[int(name)] }
	}
	addNamed := func(x *Incidence, names map[int]int64) {
		var items []int32
		for _, name := range slices.Sorted(maps.Keys(names)) {
			items = append(items, int32(name))
		}
		add(h.t, x, plainOrder{items, len(items)})
	}
	for _, key := range slices.Sorted(maps.Keys(h.orders)) {
		addNamed(orders, h.orders[key])
		if c := h.placed[key]; c != 0 {
			if together[c] == nil {
				together[c] = map[int]int64{}
			}
			maps.Copy(together[c], h.orders[key])
		}
	}
	for _, c := range slices.Sorted(maps.Keys(together)) {
		addNamed(customers, together[c])
	}
	want := NewAssociation(orders, customers).Rows(numbers(0, liveItems), most, 1, func(_, _ int32) bool { return false })
	numbers := make([]int32, len(h.names))
	for k := range numbers {
		numbers[k] = int32(k)
	}
	for k, got := range h.Associations(numbers, most) {
		for n, item := range got.Index {
			got.Index[n] = int32(h.names[item])
		}
		name := h.names[k]
		if w := want[name]; !slices.Equal(got.Index, w.Index) || !slices.Equal(got.Value, w.Value) {
			h.t.Fatalf("seed %d: associations of %d are %v, not %v", seed, name, got, w)
		}
		h.associated += len(got.Index)
	}
}

// lines counts those that stand.
func (h *history) lines() (n int) {
	for _, times := range h.orders {
		n += len(times)
	}
	return n
}

// The items of a changed order have hints by the orders as they are now, at once, those that it had before included.
func TestItemsOfAChangedOrderComeFirst(t *testing.T) {
	h := newHistory(t, 7)
	for range 300 {
		h.step()
	}
	h.absent = map[int]bool{}
	h.set("it", map[int]int64{1: 1 << 40, 5: 1 << 40})
	for !h.Settled() {
		h.solve(50)
	}
	h.set("it", map[int]int64{5: 1 << 40, 9: 1 << 40, 2: 1 << 40})
	if h.Changed() != 4 || h.Stale() != len(h.names) {
		t.Errorf("%d items wait first and %d in all, not 4 and %d", h.Changed(), h.Stale(), len(h.names))
	}
	want, solved := h.fresh(), []int{}
	for _, item := range h.solve(h.Changed()) {
		name := h.names[item]
		if got := h.named(item); !reflect.DeepEqual(got, slices.Clip(want[name])) {
			t.Errorf("hints of %d are %v, not %v", name, got, want[name])
		}
		solved = append(solved, name)
	}
	if slices.Sort(solved); !slices.Equal(solved, []int{1, 2, 5, 9}) {
		t.Errorf("items %v were solved at once", solved)
	}
	h.set("it", maps.Clone(h.orders["it"]))
	if h.Changed() > 0 {
		t.Errorf("an order that is stated again has %d items solved", h.Changed())
	}
}

// Lines that an order cannot have leave all as it was.
func TestLiveRefusesBadLines(t *testing.T) {
	h := newHistory(t, 3)
	h.set("it", map[int]int64{0: 1, 1: 1})
	for _, lines := range [][]Line{{{2, 1}}, {{-1, 1}}, {{1, 1}, {1, 2}}} {
		if err := h.Set("it", 1, lines); !errors.Is(err, ErrItems) {
			t.Errorf("%v: %v", lines, err)
		}
	}
	if h.x.Lines() != 2 || h.Orders() != 1 {
		t.Errorf("%d orders of %d lines are left, not 1 of 2", h.Orders(), h.x.Lines())
	}
}

// BenchmarkLive adds orders of two million lines of a hundred thousand items, and then replaces one after the other,
// whose own items are solved at once. It runs on one goroutine.
func BenchmarkLive(b *testing.B) {
	const items, lines, replaced = 100_000, 2_000_000, 50
	drawn, ends := draw(lines, items)
	for range b.N {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		l := NewLive(DefaultRidge, 0, cmp.Compare[int32], func(int32) bool { return true })
		l.Grow(items)
		begin, at := 0, make([]Line, 0, 1000)
		set := func(key, begin, end int) {
			at = at[:0]
			for _, i := range drawn[begin:end] {
				at = append(at, Line{i, int64(key)})
			}
			if err := l.Set(fmt.Sprintf("%016d", key), 0, at); err != nil {
				b.Fatal(err)
			}
		}
		for key, end := range ends {
			set(key, begin, end)
			begin = end
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(l.x.Lines()), "bytes/line")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(l.Orders()), "bytes/order")
		l.InTurn()
		began, solved := time.Now(), 0
		for k := range replaced {
			set(k, ends[k], ends[k+1])
			own, _ := l.Solve(l.Changed())
			solved += len(own)
		}
		b.ReportMetric(time.Since(began).Seconds()*1e3/float64(replaced), "ms/order")
		b.ReportMetric(float64(solved)/float64(replaced), "items/order")
	}
}
