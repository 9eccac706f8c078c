package labeltree

import "math/rand/v2"

// Halve splits rows 0..x.Len()-1 in two as Build splits a cluster: a left
// half of ⌊n/2⌋ rows and the rest, both ascending. It is the local split of a tree that
// follows a stream (featurize/live).
func Halve(x Features, r *rand.Rand) (left, right []int32) {
	rows := make([]int32, x.Len())
	for i := range rows {
		rows[i] = int32(i)
	}
	newSplitter(x).split(rows, len(rows)/2, r, 1)
	return rows[:len(rows)/2], rows[len(rows)/2:]
}
