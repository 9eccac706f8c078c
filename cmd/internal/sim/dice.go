package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"time"
)

// dice are all that chance decides in one simulation. A draw is a function of the seed and of the name of what is
// drawn, not of the draws before it. So the order in which goroutines draw does not matter.
type dice uint64

// FNV-1a, 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// hash mixes the seed with names.
func (d dice) hash(names ...string) uint64 {
	h := uint64(fnvOffset) ^ uint64(d)*fnvPrime
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * fnvPrime
		}
		h = (h ^ 0xFF) * fnvPrime // no name ends like this
	}
	// Neighbouring seeds and names must not give neighbouring numbers (the finalizer of SplitMix64).
	h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>27) * 0x94D049BB133111EB
	return h ^ h>>31
}

// randFor returns the source of random numbers that belongs to the names.
func (d dice) randFor(names ...string) *rand.Rand {
	h := d.hash(names...)
	return rand.New(rand.NewPCG(h, h^uint64(d)))
}

// drawDuration draws a duration from least to most.
func drawDuration(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// oneIn is true once in n times on average.
func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// ids is the source of session ids of one actor.
type ids struct {
	dice dice
	name string
	n    int
}

// Read implements io.Reader.
func (s *ids) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], s.dice.hash("id", s.name, strconv.Itoa(s.n)))
		s.n++
		copy(p[i:], word[:])
	}
	return len(p), nil
}
