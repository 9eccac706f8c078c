package completion

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// MaxDense is how many items Dense takes at most: it holds matrices of all pairs.
const MaxDense = 5000

// ErrNoInverse: the counts have no inverse.
var ErrNoInverse = errors.New("the counts of the orders have no inverse")

// Dense is EASE: each item regressed on all others, with counts as pairs.Ridge has them and the penalty in orders of
// one item. Orders of more than maxItems items count for none of their pairs.
func Dense(orders [][]int32, items, maxItems int, penalty float64) (Method, error) {
	gram := mat.NewSymDense(items, nil)
	for i := range items {
		gram.SetSym(i, i, penalty)
	}
	for _, o := range orders {
		w := 1 / math.Sqrt(float64(len(o)))
		for k, i := range o {
			if i < 0 {
				continue
			}
			gram.SetSym(int(i), int(i), gram.At(int(i), int(i))+w)
			for _, j := range o[k+1:] {
				if j >= 0 && len(o) <= maxItems {
					gram.SetSym(int(i), int(j), gram.At(int(i), int(j))+w)
				}
			}
		}
	}
	var factor mat.Cholesky
	if items > 0 && (!factor.Factorize(gram) || factor.InverseTo(gram) != nil) {
		return Method{}, ErrNoInverse
	}
	return Method{"EASE, of all items", func(asked []int32, scores []float64) {
		for _, i := range asked {
			for j := range scores {
				if j != int(i) {
					scores[j] -= gram.At(int(i), j) / gram.At(j, j)
				}
			}
		}
	}}, nil
}
