package eval

import (
	"slices"

	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// Neighbour is a node found near another.
type Neighbour struct {
	Node int32
	// Cosine of the two embeddings.
	Cosine float64
}

// Nearest returns, for each query node, the k other nodes whose embeddings
// have the highest cosine, best first, ties by position. The search is exact:
// it reads all of emb (n×dim) once per query.
func Nearest(emb []float32, dim int, queries []int32, k int) [][]Neighbour {
	return NearestTo(emb, emb, dim, queries, k)
}

// NearestTo is Nearest for nodes that ask with other vectors than they have in the index: those of asking (n×dim).
func NearestTo(index, asking []float32, dim int, queries []int32, k int) [][]Neighbour {
	unit := normalized(index, dim)
	found := make([][]Neighbour, len(queries))
	parallel.ForEach(len(queries), 1, 0, func(_, _, lo, _ int) {
		q := int(queries[lo])
		v := slices.Clone(asking[q*dim : (q+1)*dim])
		numeric.Normalize(v)
		found[lo] = nearestOf(unit, dim, v, q, k)
	})
	return found
}

// nearestOf returns the k rows of unit (n×dim, of length 1 or 0) that are nearest to v, without the row `without`.
func nearestOf(unit []float32, dim int, v []float32, without, k int) []Neighbour {
	var best []Neighbour
	for i := range len(unit) / dim {
		if i == without {
			continue
		}
		other := unit[i*dim : (i+1)*dim]
		if isZero(other) {
			continue // no embedding: near to nothing
		}
		c := float64(numeric.Dot(v, other))
		if len(best) == k && (k == 0 || c <= best[k-1].Cosine) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, c, func(b Neighbour, c float64) int {
			if b.Cosine >= c {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, Neighbour{int32(i), c})
		best = best[:min(k, len(best))]
	}
	return best
}

func isZero(v []float32) bool { return !slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) }

// normalized returns a copy of the rows with length 1; zero rows stay zero.
func normalized(emb []float32, dim int) []float32 {
	out := slices.Clone(emb)
	numeric.NormalizeRows(out, dim)
	return out
}
