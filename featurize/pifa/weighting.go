package pifa

import (
	"fmt"
	"math"
	"strings"
)

// Weighting is the weight of an instance in the sums.
type Weighting uint8

const (
	// Sum gives every instance weight 1, as the paper writes it.
	Sum Weighting = iota
	// InverseSqrtDegree gives instance i weight 1/√|y_i|, as PECOS does: it normalizes the rows of
	// Y, so an instance with many labels says less about each.
	InverseSqrtDegree
)

// weightings are the names of all weightings, by number.
var weightings = [...]string{Sum: "sum", InverseSqrtDegree: "inverse_sqrt_degree"}

// WeightingNames returns the names of all weightings.
func WeightingNames() []string { return weightings[:] }

// ParseWeighting returns the weighting of that name.
func ParseWeighting(name string) (Weighting, error) {
	for w, n := range weightings {
		if n == name {
			return Weighting(w), nil
		}
	}
	return 0, fmt.Errorf("pifa: unknown weighting %q; use one of: %s", name, strings.Join(weightings[:], ", "))
}

// WeightOf returns the weight of an instance, given the sum of the squares of its labels' weights: their number, where
// they have none.
func (w Weighting) WeightOf(squares float64) float32 {
	if w == InverseSqrtDegree && squares > 0 {
		return float32(1 / math.Sqrt(squares))
	}
	return 1
}
