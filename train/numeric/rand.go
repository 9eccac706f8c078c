package numeric

import "math/bits"

// golden is 2⁶⁴ divided by the golden ratio, the increment of SplitMix64
// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
const golden = 0x9E3779B97F4A7C15

// Mix is SplitMix64's output function: a bijection that scatters its input.
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}

// Rand is a SplitMix64 generator; copy it to fork it.
type Rand struct{ state uint64 }

// NewRand returns the generator for the given seed and coordinates.
func NewRand(seed uint64, at ...uint64) Rand {
	s := Mix(seed + golden)
	for _, a := range at {
		s = Mix(s+golden) ^ Mix(a+golden)
	}
	return Rand{s}
}

// State returns what RandFrom continues from.
func (s Rand) State() uint64 { return s.state }

// RandFrom returns the generator with the given State.
func RandFrom(state uint64) Rand { return Rand{state} }

// Uint64 returns the next 64 random bits.
func (s *Rand) Uint64() uint64 {
	s.state += golden
	return Mix(s.state)
}

// Skip passes over the next n values of Uint64.
func (s *Rand) Skip(n uint64) { s.state += n * golden }

// IntN returns a number in 0..n-1, n ≥ 1.
func (s *Rand) IntN(n int) int {
	hi, _ := bits.Mul64(s.Uint64(), uint64(n))
	return int(hi)
}

// Float64 returns a number in [0, 1).
func (s *Rand) Float64() float64 { return float64(s.Uint64()>>11) / (1 << 53) }

// Perm returns a random order of 0..n-1.
func (s *Rand) Perm(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(i)
	}
	s.Shuffle(p)
	return p
}

// Shuffle puts p in a random order (Fisher–Yates).
func (s *Rand) Shuffle(p []int32) {
	for i := len(p) - 1; i > 0; i-- {
		j := s.IntN(i + 1)
		p[i], p[j] = p[j], p[i]
	}
}

// HashString hashes a string (FNV-1a, scattered), to serve as a coordinate.
func HashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return Mix(h)
}

// Keys returns hashes of ids: what is drawn for nodes is drawn by them. A node that stays has the same key in the
// graph of the next generation, whatever came before it or left, so that the same is drawn for it.
func Keys(ids []string) []uint64 {
	keys := make([]uint64, len(ids))
	for i, id := range ids {
		keys[i] = HashString(id)
	}
	return keys
}
