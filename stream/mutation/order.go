package mutation

import (
	"slices"
	"strings"
)

// Order is what was bought together, or viewed, or put into one cart. Each input has orders of its own: equal ids of
// two inputs are two orders.
type Order struct {
	// Time is when it was placed, in microseconds since the Unix epoch. The Version of a mutation says when
	// that was stated.
	Time int64
	// Kind is what the input calls such an order, "" if it does not say.
	Kind string
	// Customer stands for who placed it, "" if the input does not say.
	Customer string
	// Lines are ascending by item, each item once. Of RemoveLines, they are all that counts, without quantities.
	Lines []Line
}

// Line is one item of an order. Whether the item is a node does not matter.
type Line struct {
	Item     string
	Quantity float32
}

// SortLines returns lines as an Order has them: of an item that occurs more than once, the quantities are added. Lines
// without an item are left out. It changes its argument.
func SortLines(lines []Line) []Line {
	lines = slices.DeleteFunc(lines, func(l Line) bool { return l.Item == "" })
	slices.SortStableFunc(lines, func(a, b Line) int { return strings.Compare(a.Item, b.Item) })
	out := lines[:0]
	for _, l := range lines {
		if last := len(out) - 1; last >= 0 && out[last].Item == l.Item {
			out[last].Quantity += l.Quantity
		} else {
			out = append(out, l)
		}
	}
	return out
}
