package plan

import "math"

// Rate is what a unit of each term costs.
type Rate map[term]float64

func (r Rate) of(q map[term]float64) (sum float64) {
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
		e := w * (r.of(seen[i].q) - seen[i].cost)
		sum += e * e
	}
	return sum
}

// solve returns the least squares of the terms, not ok if they cannot be told apart or a rate would be negative.
func solve(terms []term, seen []observation) (Rate, bool) {
	n := len(terms)
	scale := make([]float64, n) // terms differ by many orders of magnitude
	w := weights(seen)
	for j, t := range terms {
		for i, o := range seen {
			scale[j] = max(scale[j], w[i]*o.q[t])
		}
		if scale[j] == 0 {
			return nil, false
		}
	}
	a := make([][]float64, n) // the normal equations, with the right-hand side last
	for j := range a {
		a[j] = make([]float64, n+1)
		for i, o := range seen {
			x := w[i] * o.q[terms[j]] / scale[j]
			for k := range terms {
				a[j][k] += x * w[i] * o.q[terms[k]] / scale[k]
			}
			a[j][n] += x * w[i] * o.cost
		}
	}
	if !eliminate(a) {
		return nil, false
	}
	r := Rate{}
	for j, t := range terms {
		if a[j][n] < 0 {
			return nil, false
		}
		r[t] = a[j][n] / scale[j]
	}
	return r, true
}

// eliminate solves the equations in place (Gauss-Jordan), not ok if they are singular.
func eliminate(a [][]float64) bool {
	const singular = 1e-9
	for j := range a {
		pivot := j
		for k := j + 1; k < len(a); k++ {
			if math.Abs(a[k][j]) > math.Abs(a[pivot][j]) {
				pivot = k
			}
		}
		a[j], a[pivot] = a[pivot], a[j]
		if math.Abs(a[j][j]) < singular {
			return false
		}
		for c := len(a); c >= j; c-- {
			a[j][c] /= a[j][j]
		}
		for k := range a {
			if k == j {
				continue
			}
			for c := len(a); c >= j; c-- {
				a[k][c] -= a[k][j] * a[j][c]
			}
		}
	}
	return true
}
