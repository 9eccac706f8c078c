package pairs

import (
	"cmp"
	"iter"
	"slices"

	"gonum.org/v1/gonum/mat"

	"giantstream/internal/parallel"
)

// Ridge says what goes with an item: a ridge regression of whether an order has the item, on which of its partners the
// order has. So the weight of a partner is what it says beyond the other partners. This is EASE (Steck, Embarrassingly
// shallow autoencoders for sparse data, 2019), but that the regression is on partners, and not on all items. With G the
// weights of items and pairs, J the partners of item i and λ the penalty, the weights are (G_JJ + λ·I)⁻¹·G_Ji.
type Ridge struct {
	// Partners are those of the highest Cosine that an item is regressed on, at most.
	Partners int
	// Penalty is λ > 0, in orders of a single item.
	Penalty float64
	// Keep is how many partners are kept at most, those of the highest weight. A weight of 0 or less is not kept.
	Keep int
}

// DefaultRidge loses least of what later orders of a shop have (docs/measurements/2026-11-26.md).
var DefaultRidge = Ridge{Partners: 100, Penalty: 5, Keep: 50}

// Hint is a partner that says that an order has an item.
type Hint struct {
	Partner int32
	// Orders is how many orders of no more than the greatest size have both.
	Orders int32
	// Weight is what the partner adds to the prediction of the item, which is about 1 for an order that has the item.
	Weight float64
}

// regression is that of an item.
type regression struct {
	partners []Partner // in the order of the items
	// rows has the weights of the partners' pairs: that of two partners is in the row of the smaller item, and one of 0
	// is in none. Partners of a large catalog's item seldom meet each other.
	rows [][]cell
}

// cell is a weight in a row of a regression.
type cell struct {
	column int32
	weight int64
}

// bytes is about what a regression takes until it is solved.
func (r regression) bytes() int64 {
	const partner, use, row, one = 24, 8, 24, 16
	n := int64(len(r.partners)) * (partner + use + row)
	for _, cells := range r.rows {
		n += int64(len(cells)) * one
	}
	return n
}

// use is a regression that a partner is in, and its row there.
type use struct{ regression, row int32 }

// How many items AllRidges takes at a time. It begins with few, which say what an item takes.
const (
	firstRidges = 1024
	leastRidges = 64
)

// AllRidges yields what Ridges returns of items, in their order. It takes as many of them at a time as about that many
// bytes hold, judging by those before, and never more than eight times as many hold if all partners meet.
func (c *Counters) AllRidges(items []int32, o Ridge, bytes int64) iter.Seq2[int32, []Hint] {
	full := int64(o.Partners) * (56 + 8*int64(o.Partners))
	return func(yield func(int32, []Hint) bool) {
		for n := int64(firstRidges); len(items) > 0; {
			n = max(leastRidges, min(n, 8*bytes/full))
			part := items[:min(int(n), len(items))]
			items = items[len(part):]
			hints, taken := c.ridges(part, o)
			for k, i := range part {
				if !yield(i, hints[k]) {
					return
				}
			}
			n = bytes / max(1, taken/int64(len(part)))
		}
	}
}

// Ridges returns the hints of some items, those of the highest weight first. The number of goroutines changes nothing,
// nor do the other items that are asked for. But the pairs of an item are counted once for all regressions that it is
// in, so that many items at a time take less time.
func (c *Counters) Ridges(items []int32, o Ridge) [][]Hint {
	hints, _ := c.ridges(items, o)
	return hints
}

// ridges returns also about what the regressions took, in bytes.
func (c *Counters) ridges(items []int32, o Ridge) (hints [][]Hint, taken int64) {
	all := make([]regression, len(items))
	parallel.ForEach(len(items), block, len(c.each), func(worker, _, from, to int) {
		for i := from; i < to; i++ {
			all[i] = c.each[worker].regression(items[i], o)
		}
	})
	uses, partners := map[int32][]use{}, []int32{}
	for i, r := range all {
		for row, p := range r.partners {
			if uses[p.Item] == nil {
				partners = append(partners, p.Item)
			}
			uses[p.Item] = append(uses[p.Item], use{int32(i), int32(row)})
		}
	}
	parallel.ForEach(len(partners), 1, len(c.each), func(worker, _, from, to int) {
		for _, item := range partners[from:to] {
			c.each[worker].fill(item, all, uses[item])
		}
	})
	hints = make([][]Hint, len(items))
	solvers := make([]solver, len(c.each))
	parallel.ForEach(len(items), 1, len(c.each), func(worker, _, from, to int) {
		for i := from; i < to; i++ {
			hints[i] = solvers[worker].solve(all[i], o, c.each[worker].x)
		}
	})
	for _, r := range all {
		taken += r.bytes()
	}
	return hints, taken
}

// regression returns the regression of an item, whose rows are empty.
func (c *Counter) regression(item int32, o Ridge) regression {
	found := c.Partners(item, Rule{Measure: Cosine, MinSupport: 1, MaxPartners: o.Partners}, nil)
	r := regression{partners: slices.Clone(found), rows: make([][]cell, len(found))}
	slices.SortFunc(r.partners, func(a, b Partner) int { return c.x.order(a.Item, b.Item) })
	return r
}

// fill writes the weights of the pairs of an item with those of greater numbers to the regressions that have it.
func (c *Counter) fill(item int32, all []regression, uses []use) {
	c.grow()
	for numbers := range slices.Chunk(c.x.of[item], ordersAtOnce) {
		for _, o := range c.gather(numbers) {
			for k := len(o.items) - 1; o.items[k] > item; k-- { // they ascend, and item is one of them
				j := o.items[k]
				if c.weight[j] == 0 {
					c.met = append(c.met, j)
				}
				c.weight[j] += o.weight
			}
		}
	}
	for _, u := range uses {
		c.row = c.row[:0]
		for column, p := range all[u.regression].partners {
			if w := c.weight[p.Item]; w != 0 {
				c.row = append(c.row, cell{int32(column), w})
			}
		}
		all[u.regression].rows[u.row] = slices.Clone(c.row)
	}
	for _, j := range c.met {
		c.weight[j] = 0
	}
	c.met = c.met[:0]
}

// solver solves one regression after the other. Each goroutine needs its own.
type solver struct {
	gram   []float64
	factor mat.Cholesky
}

// solve returns the hints that are kept.
func (s *solver) solve(r regression, o Ridge, x *Incidence) (hints []Hint) {
	n := len(r.partners)
	if n == 0 {
		return nil
	}
	s.gram = slices.Grow(s.gram[:0], n*n)[:n*n]
	clear(s.gram)
	with := mat.NewVecDense(n, nil)
	for a, p := range r.partners {
		with.SetVec(a, float64(p.Weight)/unit)
		s.gram[a*n+a] = float64(x.weight[p.Item])/unit + o.Penalty
		for _, c := range r.rows[a] {
			b := int(c.column)
			s.gram[min(a, b)*n+max(a, b)] = float64(c.weight) / unit
		}
	}
	// The matrix is positive definite: pairs of orders, what large orders add to the diagonal, and the penalty.
	if !s.factor.Factorize(mat.NewSymDense(n, s.gram)) {
		return nil // by rounding alone
	}
	_ = s.factor.SolveVecTo(with, with) // a large condition number is no failure
	for a, p := range r.partners {
		if w := with.AtVec(a); w > 0 {
			hints = append(hints, Hint{p.Item, p.Orders, w})
		}
	}
	slices.SortFunc(hints, func(a, b Hint) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), x.order(a.Partner, b.Partner))
	})
	return slices.Clone(hints[:min(len(hints), o.Keep)])
}
