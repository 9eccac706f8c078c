package labeltree

import (
	"math"

	"giantstream/internal/parallel"
)

// Tree is a balanced hierarchy of clusters of labels. Labels are positions
// 0..Labels()-1. It is immutable and safe for concurrent use.
type Tree struct {
	levels []int   // clusters per level, each a multiple of the one before
	leafOf []int32 // label → leaf, -1 if in none
	// members are the labels by leaf and then number; leaf k holds
	// members[start[k]:start[k+1]]. So every cluster of any level is a range.
	members []int32
	start   []int
}

func newTree(levels []int, leafOf []int32) *Tree {
	t := &Tree{levels: levels, leafOf: leafOf, start: make([]int, levels[len(levels)-1]+1)}
	for _, leaf := range leafOf {
		if leaf >= 0 {
			t.start[leaf+1]++
		}
	}
	for k := range len(t.start) - 1 {
		t.start[k+1] += t.start[k]
	}
	t.members = make([]int32, t.start[len(t.start)-1])
	next := append([]int(nil), t.start...)
	for label, leaf := range leafOf {
		if leaf >= 0 {
			t.members[next[leaf]] = int32(label)
			next[leaf]++
		}
	}
	return t
}

// Levels returns the number of levels.
func (t *Tree) Levels() int { return len(t.levels) }

// Labels returns the number of labels, those in no cluster included.
func (t *Tree) Labels() int { return len(t.leafOf) }

// Clusters returns the number of clusters of a level.
func (t *Tree) Clusters(level int) int { return t.levels[level] }

// Cluster returns the cluster of a level that holds the label, or -1 if the
// label is in none or unknown to the tree.
func (t *Tree) Cluster(level, label int) int32 {
	if label < 0 || label >= len(t.leafOf) {
		return -1
	}
	leaf := t.leafOf[label]
	if leaf < 0 {
		return -1
	}
	return leaf / int32(t.leavesPer(level))
}

// leavesPer returns the number of leaves of a cluster of a level.
func (t *Tree) leavesPer(level int) int { return t.levels[len(t.levels)-1] / t.levels[level] }

// Parent returns the cluster of level-1 that holds the cluster of level ≥ 1.
func (t *Tree) Parent(level int, cluster int32) int32 {
	return cluster / int32(t.levels[level]/t.levels[level-1])
}

// Children returns the clusters lo ≤ c < hi of level+1 that make up the
// cluster of level; level+1 must exist.
func (t *Tree) Children(level int, cluster int32) (lo, hi int32) {
	b := int32(t.levels[level+1] / t.levels[level])
	return cluster * b, (cluster + 1) * b
}

// Members returns the labels of a cluster. The slice must not be changed.
func (t *Tree) Members(level int, cluster int32) []int32 {
	leaves := t.leavesPer(level)
	return t.members[t.start[int(cluster)*leaves]:t.start[(int(cluster)+1)*leaves]]
}

// MeanCosine returns how tight the clusters of a level are: the mean over the
// labels of the cosine between the label's features and the sum of its
// cluster. The features may be other ones than the tree was built on; their
// rows must have length 1 or be zero (workers ≤ 0: one per CPU).
func (t *Tree) MeanCosine(level int, x Features, workers int) float64 {
	workers = parallel.Workers(workers)
	sums := make([][]float32, workers)
	cosines := make([]float64, t.levels[level])
	parallel.ForEach(t.levels[level], 1, workers, func(worker, c, _, _ int) {
		if sums[worker] == nil {
			sums[worker] = make([]float32, x.width())
		}
		sum := sums[worker]
		members := t.Members(level, int32(c))
		ones := make([]int8, len(members))
		for k := range ones {
			ones[k] = 1
		}
		x.accumulate(members, ones, sum, 1)
		// Σ_i ⟨x_i, S⟩/‖S‖ = ‖S‖, and ‖S‖² = Σ_i ⟨x_i, S⟩.
		products := make([]float32, len(members))
		x.dots(members, sum, products, 1)
		var square float64
		for _, p := range products {
			square += float64(p)
		}
		cosines[c] = math.Sqrt(max(square, 0))
		x.reset(members, sum)
	})
	var total float64
	for _, c := range cosines {
		total += c
	}
	return total / float64(max(1, len(t.members)))
}
