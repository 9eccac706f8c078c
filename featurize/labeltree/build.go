package labeltree

import (
	"errors"
	"fmt"
)

// ErrNoLabels is returned by Build when every label's features are zero.
var ErrNoLabels = errors.New("labeltree: no label has features; does the graph have edges?")

// Options are the settings of Build; the zero value is a good choice (see the
// package documentation for the shape it gives).
type Options struct {
	// Levels are the numbers of clusters per level, coarse to fine: ascending,
	// each a multiple of the one before. Empty: chosen by MaxLeafSize and Branching.
	Levels []int
	// MaxLeafSize is the most labels a leaf may hold (0: 48).
	MaxLeafSize int
	// Branching is the number of children per cluster, 2 or more (0: 4).
	Branching int
	// Sample is the most labels of a cluster that determine the direction of its cut (0: 10,000;
	// below 0: all labels).
	Sample int
	Seed   uint64
	// Workers ≤ 0: one per CPU. The tree does not depend on it.
	Workers int
}

// Build clusters the labels whose features are not zero.
func Build(x Features, opt Options) (*Tree, error) {
	var members []int32
	for i := range int32(x.Len()) {
		if !x.isFinite(i) {
			return nil, fmt.Errorf("labeltree: the features of label %d are not finite", i)
		}
		if !x.isZero(i) {
			members = append(members, i)
		}
	}
	if len(members) == 0 {
		return nil, ErrNoLabels
	}
	levels, err := opt.levels(len(members))
	if err != nil {
		return nil, err
	}
	leafOf := make([]int32, x.Len())
	for i := range leafOf {
		leafOf[i] = -1
	}
	for leaf, c := range (&division{x, fanOuts(levels), opt}).run(root(len(members)), members) {
		for _, label := range members[c.lo:c.hi] {
			leafOf[label] = int32(leaf)
		}
	}
	return newTree(levels, leafOf), nil
}
