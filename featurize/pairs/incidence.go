package pairs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// DefaultMaxItems is how many items an order may state whose pairs count.
const DefaultMaxItems = 2000

// unit is the weight of an order of one item.
const unit = 1 << 24

// weightOf is the weight of an order that states that many items.
func weightOf(stated int) int64 { return int64(math.Round(unit / math.Sqrt(float64(max(1, stated))))) }

// Errors of Add.
var (
	// ErrItems: the items of an order do not ascend, or one of them is no item.
	ErrItems = errors.New("items of an order must ascend, without duplicates, below the number of items")
	// ErrFull: there are as many orders as numbers.
	ErrFull = errors.New("an incidence holds fewer than 2^31 orders")
)

// Incidence is which order has which items. Items have numbers from 0 on. It is not safe for concurrent changes.
type Incidence struct {
	maxItems int
	orders   []order
	free     []int32   // numbers of orders that were taken back
	of       [][]int32 // the orders of each item, ascending
	weight   []int64   // of each item
	total    int64
	paired   []int64 // the weight of the pairs with each item
	pairs    int64   // and of all, each twice
	lines    int

	// compare says which of two items comes first where all else is equal, nil for the smaller number. counts says
	// which items have partners and are some, nil for all: pairs with others are not made. A Live sets both.
	compare func(a, b int32) int
	counts  func(item int32) bool
}

// order says which item comes first, as cmp.Compare does.
func (x *Incidence) order(a, b int32) int {
	if x.compare == nil {
		return cmp.Compare(a, b)
	}
	return x.compare(a, b)
}

// isCounted says whether an item has partners and is one.
func (x *Incidence) isCounted(item int32) bool { return x.counts == nil || x.counts(item) }

// What takes memory, as measured by BenchmarkPartners.
const (
	lineBytes    = 9
	orderBytes   = 40
	itemBytes    = 40
	counterBytes = 12
)

type order struct {
	items  []int32
	stated int32
}

// New returns an Incidence of that many items and no orders. maxItems is how many items an order may state whose pairs
// count, 0 for DefaultMaxItems.
func New(items, maxItems int) *Incidence {
	if maxItems <= 0 {
		maxItems = DefaultMaxItems
	}
	x := &Incidence{maxItems: maxItems}
	x.grow(items)
	return x
}

// grow adds items.
func (x *Incidence) grow(more int) {
	x.of, x.weight = append(x.of, make([][]int32, more)...), append(x.weight, make([]int64, more)...)
	x.paired = append(x.paired, make([]int64, more)...)
}

// Items is the number of items.
func (x *Incidence) Items() int { return len(x.of) }

// Orders is the number of orders.
func (x *Incidence) Orders() int { return len(x.orders) - len(x.free) }

// Lines is the number of items of all orders.
func (x *Incidence) Lines() int { return x.lines }

// MemoryBytes is about what the incidence takes.
func (x *Incidence) MemoryBytes() int64 {
	return int64(x.lines)*lineBytes + int64(len(x.orders))*orderBytes + int64(len(x.of))*itemBytes
}

// CounterBytes is what a Counter takes.
func (x *Incidence) CounterBytes() int64 { return int64(len(x.of)) * counterBytes }

// Support is the number of orders that have an item.
func (x *Incidence) Support(item int32) int { return len(x.of[item]) }

// Add adds an order and returns its number. Items ascend; Add keeps a copy. stated is how many items the order has,
// with those that have no number; it is at least len(items).
func (x *Incidence) Add(items []int32, stated int) (number int32, err error) {
	for k, i := range items {
		if i < 0 || int(i) >= len(x.of) || k > 0 && items[k-1] >= i {
			return 0, fmt.Errorf("item %d: %w", i, ErrItems)
		}
	}
	stated = min(max(stated, len(items)), math.MaxInt32)
	o := order{slices.Clone(items), int32(stated)}
	switch n := len(x.free); {
	case n > 0:
		number, x.free = x.free[n-1], x.free[:n-1]
		x.orders[number] = o
	case len(x.orders) == math.MaxInt32:
		return 0, ErrFull
	default:
		number, x.orders = int32(len(x.orders)), append(grown(x.orders), o)
	}
	w := weightOf(stated)
	for _, i := range items {
		at, _ := slices.BinarySearch(x.of[i], number)
		x.of[i] = slices.Insert(grown(x.of[i]), at, number)
		x.weight[i] += w
	}
	x.total += w
	x.lines += len(items)
	x.pair(o, 1)
	return number, nil
}

// Remove takes back an order by the number that Add returned. Add may give the number to another order.
func (x *Incidence) Remove(number int32) {
	o := x.orders[number]
	w := weightOf(int(o.stated))
	for _, i := range o.items {
		at, _ := slices.BinarySearch(x.of[i], number)
		x.of[i] = slices.Delete(x.of[i], at, at+1)
		x.weight[i] -= w
	}
	x.total -= w
	x.lines -= len(o.items)
	x.pair(o, -1)
	x.orders[number] = order{}
	x.free = append(x.free, number)
}

// pair adds the pairs of an order to their weight, or takes them back.
func (x *Incidence) pair(o order, by int64) {
	if int(o.stated) > x.maxItems || len(o.items) < 2 {
		return
	}
	w := by * weightOf(int(o.stated)) * int64(len(o.items)-1)
	for _, i := range o.items {
		x.paired[i] += w
	}
	x.pairs += w * int64(len(o.items))
}

// ItemsOf returns the items of an order that Add has numbered, not to be changed; none if it was taken back.
func (x *Incidence) ItemsOf(number int32) []int32 { return x.orders[number].items }

// CopyOrder adds an order to another incidence of the same items.
func (x *Incidence) CopyOrder(number int32, to *Incidence) error {
	_, err := to.Add(x.orders[number].items, int(x.orders[number].stated))
	return err
}

// grown makes room for one more, an eighth at a time: append would double short lists.
func grown[T any](s []T) []T {
	if len(s) < cap(s) {
		return s
	}
	more := make([]T, len(s), len(s)+1+len(s)/8)
	copy(more, s)
	return more
}
