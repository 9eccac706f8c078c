package heads

import (
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
)

// sampled are neighbours drawn for some nodes.
type sampled struct {
	// reached are the nodes and then, once each, the other nodes drawn for them.
	reached []int32
	// neighbours are places in reached; those of node k end at end[k].
	neighbours []int32
	end        []int
	place      []int32 // of every node of the graph in reached, -1 outside
	drawn      []int32
}

func newSampled(nodes int) sampled {
	s := sampled{place: make([]int32, nodes)}
	for i := range s.place {
		s.place[i] = -1
	}
	return s
}

// draw samples at most k neighbours of each node.
func (s *sampled) draw(a *sparse.Matrix, nodes []int32, k int, from numeric.Rand) {
	for _, v := range s.reached {
		s.place[v] = -1
	}
	s.reached, s.neighbours, s.end = s.reached[:0], s.neighbours[:0], s.end[:0]
	for _, v := range nodes {
		s.reach(v)
	}
	for _, v := range nodes {
		s.drawn = choose(s.drawn[:0], a.Row(int(v)).Index, k, fork(from, int(v)))
		for _, u := range s.drawn {
			s.neighbours = append(s.neighbours, s.reach(u))
		}
		s.end = append(s.end, len(s.neighbours))
	}
}

// reach returns v's place in reached, after adding v if it is new.
func (s *sampled) reach(v int32) int32 {
	if s.place[v] < 0 {
		s.place[v] = int32(len(s.reached))
		s.reached = append(s.reached, v)
	}
	return s.place[v]
}

// neighboursOf returns the places of the neighbours drawn for node k.
func (s *sampled) neighboursOf(k int) []int32 {
	from := 0
	if k > 0 {
		from = s.end[k-1]
	}
	return s.neighbours[from:s.end[k]]
}

// fork returns the random numbers of one node.
func fork(from numeric.Rand, node int) numeric.Rand {
	return numeric.NewRand(from.Uint64(), uint64(node))
}

// choose appends k of the neighbours, drawn without replacement, to dst; all
// of them when there are no more (Floyd's algorithm: Bentley and Floyd 1987).
func choose(dst, neighbours []int32, k int, r numeric.Rand) []int32 {
	n := len(neighbours)
	if n <= k {
		return append(dst, neighbours...)
	}
	begin := len(dst)
	for j := n - k; j < n; j++ {
		c := neighbours[r.IntN(j+1)]
		if slices.Contains(dst[begin:], c) {
			c = neighbours[j]
		}
		dst = append(dst, c)
	}
	return dst
}
