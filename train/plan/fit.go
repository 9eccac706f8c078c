package plan

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Rate is what a unit of each term costs.
type Rate map[term]float64

// costOf returns the cost of quantities of the terms.
func (r Rate) costOf(q map[term]float64) (sum float64) {
	for t, each := range r {
		sum += each * q[t]
	}
	return sum
}

// observation is what a stage cost in a build.
type observation struct {
	q    map[term]float64
	cost float64
}

// fitRate returns rates of at least 0 that explain what was observed, with the least squares of relative errors. Of
// terms that do not improve it, the first ones are kept.
func fitRate(terms []term, seen []observation) Rate {
	var best Rate
	least := math.Inf(1)
	for set := 1; set < 1<<len(terms); set++ {
		var chosen []term
		for i, t := range terms {
			if set&(1<<i) != 0 {
				chosen = append(chosen, t)
			}
		}
		if len(chosen) > len(seen) {
			continue
		}
		rate, ok := solve(chosen, seen)
		if !ok {
			continue
		}
		// More terms must be worth it: noise alone is always explained a little better.
		const better = 0.999
		if e := residual(rate, seen); e < better*least {
			best, least = rate, e
		}
	}
	return best
}

// floor is the cost below which an observation says nothing, as a share of the largest.
const floor = 1e-3

func weights(seen []observation) []float64 {
	most := 0.0
	for _, o := range seen {
		most = max(most, o.cost)
	}
	w := make([]float64, len(seen))
	for i, o := range seen {
		if c := max(o.cost, floor*most); c > 0 {
			w[i] = 1 / c
		}
	}
	return w
}

func residual(r Rate, seen []observation) (sum float64) {
	for i, w := range weights(seen) {
		e := w * (r.costOf(seen[i].q) - seen[i].cost)
		sum += e * e
	}
	return sum
}

// solve returns the least squares of the terms, not ok if they cannot be told apart or a rate would be negative.
func solve(terms []term, seen []observation) (Rate, bool) {
	scale := make([]float64, len(terms)) // terms differ by many orders of magnitude
	w := weights(seen)
	for j, t := range terms {
		for i, o := range seen {
			scale[j] = max(scale[j], w[i]*o.q[t])
		}
		if scale[j] == 0 {
			return nil, false
		}
	}
	a, b := mat.NewDense(len(seen), len(terms), nil), mat.NewVecDense(len(seen), nil)
	for i, o := range seen {
		for j, t := range terms {
			a.Set(i, j, w[i]*o.q[t]/scale[j])
		}
		b.SetVec(i, w[i]*o.cost)
	}
	const singular = 1e5 // condition beyond which terms are the same but for noise
	var qr mat.QR
	if qr.Factorize(a); !(qr.Cond() < singular) {
		return nil, false
	}
	var x mat.VecDense
	if err := qr.SolveVecTo(&x, false, b); err != nil {
		return nil, false
	}
	r := Rate{}
	for j, t := range terms {
		if x.AtVec(j) < 0 {
			return nil, false
		}
		r[t] = x.AtVec(j) / scale[j]
	}
	return r, true
}
