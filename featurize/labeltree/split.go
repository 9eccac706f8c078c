package labeltree

import (
	"math"
	"math/rand/v2"
)

// maxIterations bounds the rounds of one split, as in PECOS.
const maxIterations = 20

// splitter halves one cluster at a time. It holds the scratch memory.
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

// halve reorders members (ascending) so that those of the left half, ⌊n/2⌋,
// come before those of the right half, each ascending.
func (s *splitter) halve(members []int32, r *rand.Rand, workers int) {
	n := len(members)
	if n < 2 {
		return
	}
	s.isLeft, s.weight = resize(s.isLeft, n), resize(s.weight, n)
	s.t, s.l = resize(s.t, n), resize(s.l, n)
	s.keys, s.order = resize(s.keys, n), resize(s.order, n)
	clear(s.isLeft)
	i := r.IntN(n)
	j := (i + 1 + r.IntN(n-1)) % n
	s.start(members, i, j, workers)
	s.cut()
	s.sumAll(members, workers)
	for range maxIterations - 1 {
		s.score(members, workers)
		if s.cut() == 0 {
			break
		}
	}
	lo, hi := 0, n/2
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
func (s *splitter) score(members []int32, workers int) {
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
	scaleL, scaleR := inverseRoot(squareL), inverseRoot(squareR)
	for k, l := range s.l {
		s.keys[k] = key(float32(float64(s.t[k]-l)*scaleR-float64(l)*scaleL), k)
	}
}

func inverseRoot(square float64) float64 {
	if square <= 0 {
		return 0
	}
	return 1 / math.Sqrt(square)
}

// cut assigns the members with the lower half of the keys to the left, and
// returns how many changed sides.
func (s *splitter) cut() (changed int) {
	middle := len(s.keys) / 2
	selectNth(s.keys, middle)
	for k, key := range s.keys {
		i, toLeft := uint32(key), k < middle
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

// key is an integer that sorts by score and then by number.
func key(score float32, i int) uint64 { return uint64(ordered(score))<<32 | uint64(uint32(i)) }

// ordered maps a float32 to an integer of the same order; -0 and 0 alike.
func ordered(v float32) uint32 {
	b := math.Float32bits(v)
	if v == 0 {
		b = 0
	}
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

// selectNth reorders distinct keys so that the n smallest come first
// (quickselect, median of three).
func selectNth(keys []uint64, n int) {
	for lo, hi := 0, len(keys)-1; lo < hi; {
		a, b, c := keys[lo], keys[lo+(hi-lo)/2], keys[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for keys[i] < pivot {
				i++
			}
			for keys[j] > pivot {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return
		}
	}
}

func resize[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}
