package labeltree

import "math"

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
