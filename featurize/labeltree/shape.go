package labeltree

import "fmt"

// maxLevels is enough for 2³¹ leaves.
const maxLevels = 31

// coarsest is how many clusters the first level has at least, where there are
// labels enough.
const coarsest = 16

// follows reports whether a level of k clusters can come after one of last (0
// for none): each cluster has the same number of children, 2 or more.
func follows(k, last int) bool { return k > last && (last == 0 || k%last == 0) }

// levels returns the number of clusters per level for n labels.
func (o Options) levels(n int) ([]int, error) {
	if len(o.Levels) > 0 {
		return o.given(n)
	}
	size, branching := o.MaxLeafSize, o.Branching
	if size <= 0 {
		size = 48
	}
	if branching == 0 {
		branching = 4
	}
	if branching < 2 {
		return nil, fmt.Errorf("labeltree: branching %d, want at least 2", branching)
	}
	// top clusters at the coarsest level, a power of two; children of each to the leaves.
	least := (n + size - 1) / size
	top, leaves := 1, 1
	for branching <= (least-1)/leaves/(coarsest/2) {
		leaves *= branching
	}
	for top*leaves < least || (top*leaves < coarsest && n >= 4*top*leaves) {
		top *= 2
	}
	if top*leaves > n { // leaves of one label each, when MaxLeafSize is 1
		top /= 2
	}
	if top < coarsest && leaves > 1 {
		top, leaves = top*branching, leaves/branching
	}
	levels := []int{top}
	for ; leaves > 1; leaves /= branching {
		top *= branching
		levels = append(levels, top)
	}
	return levels, nil
}

// given checks Levels.
func (o Options) given(n int) ([]int, error) {
	last := 0
	for _, k := range o.Levels {
		if !follows(k, last) {
			return nil, fmt.Errorf("labeltree: levels %v, want ascending numbers, each a multiple of the one before",
				o.Levels)
		}
		last = k
	}
	if last > n {
		return nil, fmt.Errorf("labeltree: %d leaves for %d labels; ask for fewer levels", last, n)
	}
	return append([]int(nil), o.Levels...), nil
}
