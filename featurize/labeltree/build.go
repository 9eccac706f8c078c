package labeltree

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"giantstream/featurize/internal/parallel"
)

// ErrNoLabels is returned by Build when every label's features are zero.
var ErrNoLabels = errors.New("labeltree: no label has features; does the graph have edges?")

// Options are the settings of Build; the zero value is a good choice (see the
// package documentation for the shape it gives).
type Options struct {
	// Levels are the numbers of clusters per level, coarse to fine: ascending
	// powers of two. Empty: chosen by MaxLeafSize and Branching.
	Levels []int
	// MaxLeafSize is the most labels a leaf may hold (0: 48).
	MaxLeafSize int
	// Branching is the number of children per cluster, a power of two (0: 4).
	Branching int
	Seed      uint64
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
	leaves := levels[len(levels)-1]
	start := cluster(x, members, leaves, opt)
	leafOf := make([]int32, x.Len())
	for i := range leafOf {
		leafOf[i] = -1
	}
	for leaf := range leaves {
		for _, label := range members[start[leaf]:start[leaf+1]] {
			leafOf[label] = int32(leaf)
		}
	}
	return newTree(levels, leafOf), nil
}

// levels returns the number of clusters per level for n labels.
func (o Options) levels(n int) ([]int, error) {
	if len(o.Levels) > 0 {
		last := 0
		for _, k := range o.Levels {
			if !powerOfTwo(k) || k <= last {
				return nil, fmt.Errorf("labeltree: levels %v, want ascending powers of two", o.Levels)
			}
			last = k
		}
		if last > n {
			return nil, fmt.Errorf("labeltree: %d leaves for %d labels; ask for fewer levels", last, n)
		}
		return append([]int(nil), o.Levels...), nil
	}
	size, branching := o.MaxLeafSize, o.Branching
	if size <= 0 {
		size = 48
	}
	if branching == 0 {
		branching = 4
	}
	if !powerOfTwo(branching) || branching < 2 {
		return nil, fmt.Errorf("labeltree: branching %d, want a power of two from 2", branching)
	}
	const coarsest = 16
	leaves := 1
	for (leaves < coarsest && n >= 4*leaves) || (n+leaves-1)/leaves > size {
		leaves *= 2
	}
	if leaves > n { // leaves of one label each, when MaxLeafSize is 1
		leaves /= 2
	}
	levels := []int{leaves}
	for levels[0]/branching >= coarsest {
		levels = append([]int{levels[0] / branching}, levels...)
	}
	return levels, nil
}

func powerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }

// cluster reorders members into leaves; leaf k is members[start[k]:start[k+1]].
func cluster(x Features, members []int32, leaves int, opt Options) (start []int) {
	workers := parallel.Workers(opt.Workers)
	splitters := make([]*splitter, workers)
	get := func(w int) *splitter {
		if splitters[w] == nil {
			splitters[w] = newSplitter(x)
		}
		return splitters[w]
	}
	start = []int{0, len(members)}
	for clusters := 1; clusters < leaves; clusters *= 2 {
		split := func(worker, c, workers int) {
			// The seed of a node is its path from the root: 1, 2-3, 4-7, …
			r := rand.New(rand.NewPCG(opt.Seed, uint64(clusters+c)))
			get(worker).halve(members[start[c]:start[c+1]], r, workers)
		}
		if clusters < 2*workers { // few and large: all workers on each
			for c := range clusters {
				split(0, c, workers)
			}
		} else {
			parallel.Each(clusters, 1, workers, func(worker, c, _, _ int) { split(worker, c, 1) })
		}
		next := make([]int, 0, 2*clusters+1)
		for c := range clusters {
			n := start[c+1] - start[c]
			next = append(next, start[c], start[c]+n/2)
		}
		next = append(next, len(members))
		start = next
	}
	return start
}

// depth returns log2 of a power of two.
func depth(n int) int { return bits.TrailingZeros(uint(n)) }
