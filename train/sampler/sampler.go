package sampler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// Kind says which instances are chosen.
type Kind string

const (
	// Uniform draws every instance with the same probability.
	Uniform Kind = "uniform"
	// Degree draws instances with probabilities proportional to their numbers of labels, or the sums of their weights.
	Degree Kind = "degree"
	// BiRank takes the instances with the highest rank in the graph of instances and labels.
	BiRank Kind = "birank"
)

// Kinds are all kinds.
var Kinds = []Kind{Uniform, Degree, BiRank}

// Parse returns the kind of a name.
func Parse(name string) (Kind, error) {
	if k := Kind(name); slices.Contains(Kinds, k) {
		return k, nil
	}
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = string(k)
	}
	return "", fmt.Errorf("sampler %q must be one of: %s", name, strings.Join(names, ", "))
}

// stream separates the draws from other random numbers of the same seed.
const stream = 'M'

// Select returns n of the instances, in ascending order, or all of them if they are no more than n. Row i of labels has
// the labels of node i, by whose key it is drawn. instances are nodes with at least one label, in ascending order.
func Select(kind Kind, labels *sparse.Matrix, keys []uint64, instances []int32, n int, seed uint64,
	workers int) []int32 {
	if n >= len(instances) {
		return instances
	}
	rank := make([]float64, len(instances))
	switch kind {
	case BiRank:
		for k, score := range Rank(labels, instances, workers) {
			rank[k] = -score
		}
	default:
		// Weighted sampling without replacement (Efraimidis and Spirakis, 2006): the smallest of exponential
		// variables whose rates are the weights.
		for k, i := range instances {
			weight := 1.0
			if kind == Degree {
				weight = labels.Row(int(i)).Sum()
			}
			r := numeric.NewRand(seed, stream, keys[i])
			rank[k] = -math.Log1p(-r.Float64()) / weight
		}
	}
	order := make([]int32, len(instances))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
	})
	chosen := order[:n]
	slices.Sort(chosen)
	for j, k := range chosen {
		chosen[j] = instances[k]
	}
	return chosen
}

const (
	// damping is α and β of the iteration, the weight of the graph beside the query vectors. He et al. use 0.85.
	damping = 0.85
	// maxSweeps bounds the iteration, whose error falls by damping² a sweep: 50 leave less than 1e-7 of it.
	maxSweeps = 50
	// tolerance is the mean relative change of the scores at which the iteration ends.
	tolerance = 1e-6
	rankBlock = 4096
)

// Rank returns the BiRank score of each instance (He et al., 2017, equations 5 and 6): scores u of instances and p of
// labels, each the sum of its neighbours' scores over the roots of both degrees,
//
//	p = α·Sᵀu + (1-α)·p₀,  u = β·S·p + (1-β)·u₀,  S = Du^(-1/2) · W · Dp^(-1/2),
//
// where W is the 0/1 matrix of the instances' labels, Du and Dp are its row and column sums, and the query vectors p₀
// and u₀ are uniform with sum 1. Every score is one sum in ascending order of neighbours, so any number of workers
// gives the same bits. It takes 4 bytes an entry of W, and 24 bytes an instance and 32 a label.
func Rank(labels *sparse.Matrix, instances []int32, workers int) []float64 {
	w := &sparse.Matrix{Cols: labels.Cols, Start: make([]int64, 1, len(instances)+1)}
	for _, i := range instances {
		w.Append(sparse.Vector{Index: labels.Row(int(i)).Index})
	}
	t := w.Transpose()
	linked := 0
	for j := range t.Rows {
		if t.Start[j] < t.Start[j+1] {
			linked++
		}
	}
	u, p := make([]float64, w.Rows), make([]float64, t.Rows)
	u0, p0 := 1/float64(max(1, w.Rows)), 1/float64(max(1, linked))
	fill(u, u0)
	changes := make([]float64, parallel.Blocks(w.Rows, rankBlock))
	for range maxSweeps {
		sweep(p, t, u, w, p0, workers, nil)
		sweep(u, w, p, t, u0, workers, changes)
		change := 0.0
		for _, c := range changes {
			change += c
		}
		if change <= tolerance*u0*float64(w.Rows) {
			break
		}
	}
	return u
}

// sweep sets to, a score per row of m, from the scores of m's columns, which are the rows of back. changes, unless it
// is nil, gets the sum of absolute changes of each block.
func sweep(to []float64, m *sparse.Matrix, from []float64, back *sparse.Matrix, query float64, workers int,
	changes []float64) {
	degree := func(m *sparse.Matrix, i int) float64 { return float64(m.Start[i+1] - m.Start[i]) }
	parallel.ForEach(m.Rows, rankBlock, workers, func(_, block, lo, hi int) {
		change := 0.0
		for i := lo; i < hi; i++ {
			sum := 0.0
			for _, j := range m.Row(i).Index {
				sum += from[j] / math.Sqrt(degree(back, int(j)))
			}
			score := 0.0
			if d := degree(m, i); d > 0 {
				score = damping*sum/math.Sqrt(d) + (1-damping)*query
			}
			change += math.Abs(score - to[i])
			to[i] = score
		}
		if changes != nil {
			changes[block] = change
		}
	})
}

func fill(x []float64, v float64) {
	for i := range x {
		x[i] = v
	}
}
