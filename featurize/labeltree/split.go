package labeltree

import (
	"math"
	"math/rand/v2"

	"giantstream/featurize/internal/parallel"
)

// maxIterations bounds the rounds of one split, as in PECOS.
const maxIterations = 20

// Sides of a member during a split.
const (
	unassigned = int8(iota)
	left
	right
)

// splitter halves one cluster at a time. It holds the scratch memory.
type splitter struct {
	x     Features
	left  []float32 // sum of the left members
	right []float32
	side  []int8 // by position among the members
	l, r  []float32
	keys  []uint64
	order []int32
}

func newSplitter(x Features) *splitter {
	return &splitter{x: x, left: make([]float32, x.width()), right: make([]float32, x.width())}
}

// halve reorders members (ascending) so that those of the left half, ⌊n/2⌋,
// come before those of the right half, each ascending.
func (s *splitter) halve(members []int32, r *rand.Rand, workers int) {
	n := len(members)
	if n < 2 {
		return
	}
	s.side = resize(s.side, n)
	s.l, s.r = resize(s.l, n), resize(s.r, n)
	s.keys, s.order = resize(s.keys, n), resize(s.order, n)
	clear(s.side)
	i := r.IntN(n)
	j := (i + 1 + r.IntN(n-1)) % n
	s.side[i], s.side[j] = right, left

	for range maxIterations {
		s.sum(members, workers)
		s.score(members, workers)
		if !s.cut() {
			break
		}
	}
	lo, hi := 0, n/2
	for i, m := range members {
		if s.side[i] == left {
			s.order[lo] = m
			lo++
		} else {
			s.order[hi] = m
			hi++
		}
	}
	copy(members, s.order)
	s.x.reset(members, s.left)
	s.x.reset(members, s.right)
}

// sum adds up the members of both sides, block by block.
func (s *splitter) sum(members []int32, workers int) {
	s.x.reset(members, s.left)
	s.x.reset(members, s.right)
	size := s.x.blockSize(len(members))
	if len(members) <= size {
		s.sumBlock(members, s.side, s.left, s.right)
		return
	}
	partial := make([][2][]float32, parallel.Blocks(len(members), size))
	parallel.Each(len(members), size, workers, func(_, b, lo, hi int) {
		partial[b] = [2][]float32{make([]float32, s.x.width()), make([]float32, s.x.width())}
		s.sumBlock(members[lo:hi], s.side[lo:hi], partial[b][0], partial[b][1])
	})
	for _, p := range partial {
		for k := range s.left {
			s.left[k] += p[0][k]
			s.right[k] += p[1][k]
		}
	}
}

func (s *splitter) sumBlock(members []int32, side []int8, l, r []float32) {
	for i, m := range members {
		switch side[i] {
		case left:
			s.x.add(m, l)
		case right:
			s.x.add(m, r)
		}
	}
}

// score sets keys to the scores ⟨c, x⟩ with c = R/‖R‖ − L/‖L‖, in an integer
// that sorts by score and then by number. The lengths come from the dot products
// that are needed anyway: ‖R‖² = Σ_{i right} ⟨R, x_i⟩.
func (s *splitter) score(members []int32, workers int) {
	parallel.Each(len(members), 512, workers, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			s.l[i], s.r[i] = s.x.dots(members[i], s.left, s.right)
		}
	})
	var squareL, squareR float64
	for i, side := range s.side {
		switch side {
		case left:
			squareL += float64(s.l[i])
		case right:
			squareR += float64(s.r[i])
		}
	}
	scaleL, scaleR := inverseRoot(squareL), inverseRoot(squareR)
	for i := range members {
		score := float32(float64(s.r[i])*scaleR - float64(s.l[i])*scaleL)
		s.keys[i] = uint64(ordered(score))<<32 | uint64(uint32(i))
	}
}

func inverseRoot(square float64) float64 {
	if square <= 0 {
		return 0
	}
	return 1 / math.Sqrt(square)
}

// cut assigns the members with the lower half of the keys to the left, and
// reports whether one changed sides.
func (s *splitter) cut() bool {
	middle := len(s.keys) / 2
	selectNth(s.keys, middle)
	changed := false
	for k, key := range s.keys {
		to := right
		if k < middle {
			to = left
		}
		if at := &s.side[uint32(key)]; *at != to {
			*at, changed = to, true
		}
	}
	return changed
}

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
