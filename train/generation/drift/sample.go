package drift

import (
	"math"
	"slices"

	"giantstream/train/numeric"
)

// Streams of hashes, so that the samples are independent of each other.
const (
	hashNode = iota + 1
	hashEdge
	hashPool
	hashLabel
	hashInstance
	hashNegative
)

// hash of a node for one of the samples.
func hashOf(stream uint64, ids ...uint64) uint64 {
	r := numeric.NewRand(stream, ids...)
	return r.Uint64()
}

// edgeHash is the same for both directions.
func edgeHash(a, b uint64) uint64 { return hashOf(hashEdge, min(a, b), max(a, b)) }

// upTo returns the bound of hashes below which about most of n are.
func upTo(most, n int) uint64 {
	if n <= most {
		return math.MaxUint64
	}
	return uint64(float64(most) / float64(n) * float64(1<<63) * 2)
}

// lowest keeps values by the lowest hashes of their keys.
type lowest[T any] struct {
	most   int
	hashes []uint64 // ascending
	values map[uint64]T
}

func newLowest[T any](most int) *lowest[T] { return &lowest[T]{most: most, values: map[uint64]T{}} }

// admits says whether a key of this hash belongs to the sample as it is.
func (l *lowest[T]) admits(hash uint64) bool {
	return len(l.hashes) < l.most || hash <= l.hashes[len(l.hashes)-1]
}

// put sets a value. It returns the one that had to leave.
func (l *lowest[T]) put(hash uint64, value T) (evicted T, left bool) {
	if _, has := l.values[hash]; !has {
		at, _ := slices.BinarySearch(l.hashes, hash)
		l.hashes = slices.Insert(l.hashes, at, hash)
	}
	l.values[hash] = value
	if len(l.hashes) <= l.most {
		return evicted, false
	}
	last := l.hashes[l.most]
	evicted = l.values[last]
	l.hashes = l.hashes[:l.most]
	delete(l.values, last)
	return evicted, true
}

func (l *lowest[T]) remove(hash uint64) {
	if _, has := l.values[hash]; has {
		at, _ := slices.BinarySearch(l.hashes, hash)
		l.hashes = slices.Delete(l.hashes, at, at+1)
		delete(l.values, hash)
	}
}

// ascending yields the values in the order of their hashes.
func (l *lowest[T]) ascending(yield func(uint64, T) bool) {
	for _, h := range l.hashes {
		if !yield(h, l.values[h]) {
			return
		}
	}
}
