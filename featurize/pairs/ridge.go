package pairs

import (
	"cmp"
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

// ItemBytes is what Ridges takes for each item that it is asked for.
func (o Ridge) ItemBytes() int64 { return int64(o.Partners) * (int64(o.Partners)*8 + 64) }

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
	// gram has the weights of pairs of partners above the diagonal, in rows of len(partners).
	gram []float64
}

// use is a regression that a partner is in, and its row there.
type use struct{ regression, row int32 }

// Ridges returns the hints of some items, those of the highest weight first. The number of goroutines changes nothing,
// nor do the other items that are asked for. But the pairs of an item are counted once for all regressions that it is
// in, so that many items at a time take less time.
func (c *Counters) Ridges(items []int32, o Ridge) [][]Hint {
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
	hints := make([][]Hint, len(items))
	parallel.ForEach(len(items), 1, len(c.each), func(_, _, from, to int) {
		for i := from; i < to; i++ {
			hints[i] = all[i].solve(o, c.each[0].x.order)
		}
	})
	return hints
}

// regression returns the regression of an item, with the diagonal of its matrix.
func (c *Counter) regression(item int32, o Ridge) regression {
	found := c.Partners(item, Rule{Measure: Cosine, MinSupport: 1, MaxPartners: o.Partners}, nil)
	r := regression{partners: slices.Clone(found), gram: make([]float64, len(found)*len(found))}
	slices.SortFunc(r.partners, func(a, b Partner) int { return c.x.order(a.Item, b.Item) })
	for a, p := range r.partners {
		r.gram[a*len(found)+a] = float64(c.x.weight[p.Item])/unit + o.Penalty
	}
	return r
}

// fill writes the weights of the pairs of an item with those of greater numbers to the regressions that have it.
func (c *Counter) fill(item int32, all []regression, uses []use) {
	c.grow()
	for _, number := range c.x.of[item] {
		o := c.x.orders[number]
		if int(o.stated) > c.x.maxItems {
			continue
		}
		w := weightOf(int(o.stated))
		at, _ := slices.BinarySearch(o.items, item)
		for _, j := range o.items[at+1:] {
			if c.weight[j] == 0 {
				c.met = append(c.met, j)
			}
			c.weight[j] += w
		}
	}
	for _, u := range uses {
		r, n := all[u.regression], len(all[u.regression].partners)
		for b, p := range r.partners {
			if p.Item > item {
				r.gram[min(int(u.row), b)*n+max(int(u.row), b)] = float64(c.weight[p.Item]) / unit
			}
		}
	}
	for _, j := range c.met {
		c.weight[j] = 0
	}
	c.met = c.met[:0]
}

// solve returns the hints that are kept. before says which of two partners of the same weight comes first.
func (r regression) solve(o Ridge, before func(a, b int32) int) (hints []Hint) {
	n := len(r.partners)
	if n == 0 {
		return nil
	}
	with := mat.NewVecDense(n, nil)
	for a, p := range r.partners {
		with.SetVec(a, float64(p.Weight)/unit)
	}
	// The matrix is positive definite: pairs of orders, what large orders add to the diagonal, and the penalty.
	var factor mat.Cholesky
	if !factor.Factorize(mat.NewSymDense(n, r.gram)) {
		return nil // by rounding alone
	}
	_ = factor.SolveVecTo(with, with) // a large condition number is no failure
	for a, p := range r.partners {
		if w := with.AtVec(a); w > 0 {
			hints = append(hints, Hint{p.Item, p.Orders, w})
		}
	}
	slices.SortFunc(hints, func(a, b Hint) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), before(a.Partner, b.Partner))
	})
	return slices.Clip(hints[:min(len(hints), o.Keep)])
}
