// Package scatter adds up sparse vectors in a dense array and reads the sum
// back in the order of its dimensions, without sorting.
package scatter

import (
	"math/bits"

	"giantstream/featurize/sparse"
)

// Sum is a sum of sparse vectors. It remembers the dimensions in use as a set
// of bits in two layers, which gives them back in order. It is for one goroutine.
type Sum struct {
	value []float32
	// Bit j%64 of used[j/64] stands for dimension j; bit k%64 of
	// usedWords[k/64] says that used[k] is not 0.
	used, usedWords []uint64
}

// New returns the empty sum of vectors of dim dimensions. It takes a little
// more than 4 bytes per dimension.
func New(dim int) *Sum {
	words := (dim + 63) / 64
	return &Sum{value: make([]float32, dim), used: make([]uint64, words), usedWords: make([]uint64, (words+63)/64)}
}

// Mark says that these dimensions are in use, for Count.
func (s *Sum) Mark(index []int32) {
	for _, j := range index {
		k := uint32(j) / 64
		s.used[k] |= 1 << (uint32(j) % 64)
		s.usedWords[k/64] |= 1 << (k % 64)
	}
}

// Count returns the number of dimensions in use of a sum that Mark alone has
// touched, and empties it.
func (s *Sum) Count() (n int64) {
	for at, words := range s.usedWords {
		for ; words != 0; words &= words - 1 {
			k := at*64 + bits.TrailingZeros64(words)
			n += int64(bits.OnesCount64(s.used[k]))
			s.used[k] = 0
		}
		s.usedWords[at] = 0
	}
	return n
}

// Add adds weight times v.
func (s *Sum) Add(v sparse.Vector, weight float32) {
	s.Mark(v.Index)
	value := v.Value[:len(v.Index)]
	for k, j := range v.Index {
		s.value[j] += float32(weight * value[k]) // not fused, as in package portable
	}
}

// Increment adds 1 in each of these dimensions, once per mention.
func (s *Sum) Increment(index []int32) {
	s.Mark(index)
	for _, j := range index {
		s.value[j]++
	}
}

// Drain appends the dimensions in use, ascending, and their values to dst, and
// empties the sum. A dimension whose sum has become 0 is in use nevertheless.
func (s *Sum) Drain(dst sparse.Vector) sparse.Vector {
	for at, words := range s.usedWords {
		for ; words != 0; words &= words - 1 {
			k := at*64 + bits.TrailingZeros64(words)
			for word := s.used[k]; word != 0; word &= word - 1 {
				j := k*64 + bits.TrailingZeros64(word)
				dst.Index = append(dst.Index, int32(j))
				dst.Value = append(dst.Value, s.value[j])
				s.value[j] = 0
			}
			s.used[k] = 0
		}
		s.usedWords[at] = 0
	}
	return dst
}
