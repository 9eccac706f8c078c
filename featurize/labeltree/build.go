package labeltree

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"giantstream/featurize/parallel"
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

// Rounds of halving. The first few clusters are large and halved by all
// workers together. Below, one worker takes a cluster groupDepth rounds down, on
// compacted features: at rounds topDepth, topDepth+groupDepth, ….
const (
	topDepth   = 3
	groupDepth = 3
)

// cluster reorders members into leaves; leaf k is members[start[k]:start[k+1]].
func cluster(x Features, members []int32, leaves int, opt Options) (start []int) {
	workers := parallel.Workers(opt.Workers)
	start = top(x, members, min(leaves, 1<<topDepth), workers, opt)
	groups := make([]group, workers)
	for len(start)-1 < leaves {
		clusters := len(start) - 1
		rounds := min(groupDepth, depth(leaves/clusters))
		below := make([][]int, clusters)
		parallel.Each(clusters, 1, workers, func(worker, c, _, _ int) {
			below[c] = groups[worker].split(x, members[start[c]:start[c+1]], clusters+c, rounds, opt)
		})
		next := []int{0}
		for c, ends := range below {
			for _, end := range ends[1:] {
				next = append(next, start[c]+end)
			}
		}
		start = next
	}
	return start
}

// top halves large clusters, one after the other.
func top(x Features, members []int32, clusters, workers int, opt Options) (start []int) {
	s := newSplitter(x)
	for start = []int{0, len(members)}; len(start)-1 < clusters; start = halves(start) {
		for c := range len(start) - 1 {
			s.halve(members[start[c]:start[c+1]], opt.random(len(start)-1+c), workers)
		}
	}
	return start
}

// random returns the random numbers of a cluster by its path from the root:
// 1, 2-3, 4-7, ….
func (o Options) random(path int) *rand.Rand {
	return rand.New(rand.NewPCG(o.Seed, uint64(path)))
}

// halves divides every range in two, as halve does.
func halves(start []int) []int {
	next := make([]int, 0, 2*len(start)-1)
	for c := range len(start) - 1 {
		next = append(next, start[c], start[c]+(start[c+1]-start[c])/2)
	}
	return append(next, start[len(start)-1])
}

// group is the scratch memory of a worker below the top.
type group struct {
	points   points
	splitter *splitter
	local    []int32
	old      []int32
}

// split reorders the members of the cluster at that path into 2^rounds
// clusters and returns where they start.
func (g *group) split(x Features, members []int32, path, rounds int, opt Options) (start []int) {
	local := members
	p, compacted := x.compact(members, g.points)
	if compacted {
		g.points = p
		g.old = append(g.old[:0], members...)
		g.local = resize(g.local, len(members))
		for k := range g.local {
			g.local[k] = int32(k)
		}
		local = g.local
	} else {
		p = x
	}
	if g.splitter == nil {
		g.splitter = &splitter{}
	}
	g.splitter.use(p)
	start = []int{0, len(members)}
	for range rounds {
		for c := range len(start) - 1 {
			g.splitter.halve(local[start[c]:start[c+1]], opt.random(path+c), 1)
		}
		start, path = halves(start), 2*path
	}
	if compacted {
		for k, i := range local {
			members[k] = g.old[i]
		}
	}
	return start
}

// depth returns log2 of a power of two.
func depth(n int) int { return bits.TrailingZeros(uint(n)) }
