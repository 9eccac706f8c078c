package labeltree

import (
	"math"
	"math/rand/v2"
)

// maxIterations bounds the rounds of one split, as in PECOS.
const maxIterations = 20

// splitter cuts one cluster in two at a time. It holds the scratch memory.
//
// With L and R the sums of both halves and T = L + R, it keeps L and the
// products t_i = ⟨T, x_i⟩. A round then takes one product a row, ⟨L, x_i⟩, as
// ⟨R, x_i⟩ = t_i − ⟨L, x_i⟩, and L follows the members that change sides.
type splitter struct {
	x      points
	left   []float32 // L
	total  []float32 // T, and the first direction
	isLeft []bool    // by position among the members
	weight []int8    // what a member's row adds to L in the next round
	t, l   []float32 // ⟨T, x_i⟩ and ⟨L, x_i⟩
	keys   []uint64
	order  []int32
	// sample is how many members give a larger cluster its direction; 0: all members give it.
	sample int
}

func newSplitter(x points) *splitter {
	s := &splitter{}
	s.use(x)
	return s
}

// use makes the splitter work on other points.
func (s *splitter) use(x points) {
	s.x = x
	s.left, s.total = resize(s.left, x.width()), resize(s.total, x.width())
	clear(s.left)
	clear(s.total)
}

// split reorders members (ascending) so that those of the left part, n of
// them, come before those of the right part, each ascending.
func (s *splitter) split(members []int32, n int, r *rand.Rand, workers int) {
	if n < 1 || n >= len(members) {
		return
	}
	if s.sample > 0 && len(members) > s.sample {
		s.splitBySample(members, n, r, workers)
	} else {
		s.converge(members, n, r, workers)
	}
	lo, hi := 0, n
	for k, m := range members {
		if s.isLeft[k] {
			s.order[lo] = m
			lo++
		} else {
			s.order[hi] = m
			hi++
		}
	}
	copy(members, s.order)
	s.x.reset(members, s.left)
	s.x.reset(members, s.total)
}

// resize makes room for the given number of members, all on the right.
func (s *splitter) resize(members int) {
	s.isLeft, s.weight = resize(s.isLeft, members), resize(s.weight, members)
	s.t, s.l = resize(s.t, members), resize(s.l, members)
	s.keys, s.order = resize(s.keys, members), resize(s.order, members)
	clear(s.isLeft)
}

// converge runs balanced 2-means; isLeft tells the outcome.
func (s *splitter) converge(members []int32, n int, r *rand.Rand, workers int) {
	s.resize(len(members))
	i := r.IntN(len(members))
	j := (i + 1 + r.IntN(len(members)-1)) % len(members)
	s.start(members, i, j, workers)
	s.cut(n)
	s.sumAll(members, workers)
	for range maxIterations - 1 {
		s.score(members, workers)
		if s.cut(n) == 0 {
			break
		}
	}
}

// start scores by the direction x_r − x_l of two members.
func (s *splitter) start(members []int32, right, left, workers int) {
	s.x.accumulate([]int32{members[right], members[left]}, []int8{1, -1}, s.total, 1)
	s.x.dots(members, s.total, s.l, workers)
	s.l[right] += s.x.lone(members[right])
	s.l[left] -= s.x.lone(members[left])
	for k, score := range s.l {
		s.keys[k] = key(score, k)
	}
	s.x.reset([]int32{members[right], members[left]}, s.total)
}

// sumAll sets T and the products with it.
func (s *splitter) sumAll(members []int32, workers int) {
	// Not s.weight: that holds the first left half, for score to add.
	ones := make([]int8, len(members))
	for k := range ones {
		ones[k] = 1
	}
	s.x.accumulate(members, ones, s.total, workers)
	s.x.dots(members, s.total, s.t, workers)
	for k, m := range members {
		s.t[k] += s.x.lone(m)
	}
}

// score brings L up to date and sets the keys to the scores ⟨c, x⟩ with
// c = R/‖R‖ − L/‖L‖. The lengths come from the same products:
// ‖L‖² = Σ_{i left} ⟨L, x_i⟩, ‖R‖² = Σ_{i right} (t_i − ⟨L, x_i⟩).
func (s *splitter) score(members []int32, workers int) (scaleL, scaleR float64) {
	s.x.accumulate(members, s.weight, s.left, workers)
	s.x.dots(members, s.left, s.l, workers)
	var squareL, squareR float64
	for k, m := range members {
		if s.isLeft[k] {
			s.l[k] += s.x.lone(m)
			squareL += float64(s.l[k])
		} else {
			squareR += float64(s.t[k] - s.l[k])
		}
	}
	// Conversions keep products from being fused, as in package portable.
	scaleL, scaleR = inverseRoot(squareL), inverseRoot(squareR)
	for k, l := range s.l {
		s.keys[k] = key(float32(float64(float64(s.t[k]-l)*scaleR)-float64(float64(l)*scaleL)), k)
	}
	return scaleL, scaleR
}

func inverseRoot(square float64) float64 {
	if square <= 0 {
		return 0
	}
	return 1 / math.Sqrt(square)
}

// cut assigns the n members with the lowest keys to the left, and returns how
// many changed sides.
func (s *splitter) cut(n int) (changed int) {
	selectNth(s.keys, n)
	for k, key := range s.keys {
		i, toLeft := uint32(key), k < n
		s.weight[i] = 0
		if s.isLeft[i] == toLeft {
			continue
		}
		s.isLeft[i] = toLeft
		changed++
		if toLeft {
			s.weight[i] = 1
		} else {
			s.weight[i] = -1
		}
	}
	return changed
}
