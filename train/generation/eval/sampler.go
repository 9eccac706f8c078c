package eval

import (
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
)

// Sampler draws nodes by degree that are not linked to a given node.
type Sampler struct {
	known *sparse.Matrix
	// cumulative[i] is the degree of nodes 0..i.
	cumulative []int64
	hidden     map[int32][]int32
}

// NewSampler returns a sampler for the graph known (an adjacency); the ends
// of hidden edges count as linked but not towards degrees.
func NewSampler(known *sparse.Matrix, hidden []Edge) *Sampler {
	s := &Sampler{known: known, cumulative: make([]int64, known.Rows), hidden: make(map[int32][]int32)}
	// In a directed graph a hub may have no out-edges, so count both ends.
	degree := make([]int64, known.Rows)
	for i := range degree {
		for _, j := range known.Row(i).Index {
			degree[i]++
			degree[j]++
		}
	}
	var sum int64
	for i, d := range degree {
		sum += d
		s.cumulative[i] = sum
	}
	for _, e := range hidden {
		s.hidden[e.Src] = append(s.hidden[e.Src], e.Dst)
		s.hidden[e.Dst] = append(s.hidden[e.Dst], e.Src)
	}
	return s
}

// Negatives appends up to k nodes, with replacement, that are neither u nor
// linked to it; fewer when they are too hard to find (u is linked to nearly
// all).
func (s *Sampler) Negatives(dst []int32, u int32, k int, r *numeric.Rand) []int32 {
	if len(s.cumulative) == 0 {
		return dst
	}
	total := s.cumulative[len(s.cumulative)-1]
	if total == 0 {
		return dst
	}
	want := len(dst) + k
	for attempt := 0; attempt < 20*k && len(dst) < want; attempt++ {
		at, _ := slices.BinarySearch(s.cumulative, int64(r.IntN(int(total)))+1)
		x := int32(at)
		if x == u || linked(s.known, int(u), x) || linked(s.known, int(x), u) || slices.Contains(s.hidden[u], x) {
			continue
		}
		dst = append(dst, x)
	}
	return dst
}

func linked(m *sparse.Matrix, i int, j int32) bool {
	_, ok := slices.BinarySearch(m.Row(i).Index, j)
	return ok
}
