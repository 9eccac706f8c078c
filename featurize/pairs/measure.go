package pairs

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Measure is how strongly two items go together.
type Measure string

// The measures, of probabilities p_i, p_j and p_ij.
const (
	// NPMI is ln(p_ij/(p_i·p_j)) / −ln p_ij: 1 for items that only come together, 0 for independent ones.
	NPMI Measure = "npmi"
	// Lift is p_ij/(p_i·p_j): how much oftener than by chance.
	Lift Measure = "lift"
	// Cosine is p_ij/√(p_i·p_j).
	Cosine Measure = "cosine"
	// Jaccard is p_ij/(p_i+p_j−p_ij): the share of the orders with either item that have both.
	Jaccard Measure = "jaccard"
)

var measures = []Measure{Cosine, NPMI, Jaccard, Lift}

// MeasureNames returns the names of all measures.
func MeasureNames() (names []string) {
	for _, m := range measures {
		names = append(names, string(m))
	}
	return names
}

// ParseMeasure returns the measure of that name.
func ParseMeasure(name string) (Measure, error) {
	if !slices.Contains(measures, Measure(name)) {
		return "", fmt.Errorf("unknown measure %q; use one of: %s", name, strings.Join(MeasureNames(), ", "))
	}
	return Measure(name), nil
}

// association returns that of two items of weights a and b that come together with weight ab > 0, among orders of
// weight all.
func (m Measure) association(ab, a, b, all int64) float64 {
	both, first, second, total := float64(ab), float64(a), float64(b), float64(all)
	switch m {
	case Lift:
		return both * total / (first * second)
	case Cosine:
		return both / math.Sqrt(first*second)
	case Jaccard:
		return both / (first + second - both)
	}
	if ab == all {
		return 1 // the limit, as all orders have both
	}
	return math.Log(both*total/(first*second)) / math.Log(total/both)
}
