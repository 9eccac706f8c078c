package labeltree

import (
	"fmt"
	"slices"

	"giantstream/internal/parallel"
	"giantstream/internal/vector"
)

// Renew returns old for other labels: label i is label from[i] of old, or new for -1. Each new label enters the
// cluster whose labels are nearest, on the way down from the first level. Then the subtrees of which more than share
// of the labels are new, or gone, are divided anew into as many leaves; all others keep their numbers and their
// labels, besides the new ones. A leaf may hold more labels than when the tree was built. Features are of length 1 or
// zero; labels without features are in no cluster.
func Renew(old *Tree, from []int32, x Features, share float64, opt Options) (*Tree, error) {
	if x.Len() != len(from) {
		return nil, fmt.Errorf("labeltree: features of %d labels, want %d", x.Len(), len(from))
	}
	r := &renewal{old: old, x: x, opt: opt, leafOf: make([]int32, len(from))}
	gone := slices.Clone(old.leafOf)
	var fresh []int32
	for i, j := range from {
		r.leafOf[i] = -1
		switch {
		case !x.isFinite(int32(i)):
			return nil, fmt.Errorf("labeltree: the features of label %d are not finite", i)
		case x.isZero(int32(i)):
		case j >= 0 && int(j) < len(gone) && old.leafOf[j] >= 0:
			r.leafOf[i], gone[j] = old.leafOf[j], -1
		default:
			fresh = append(fresh, int32(i))
		}
	}
	r.enter(fresh)
	level := old.renewLevel()
	for _, c := range r.changed(level, fresh, gone, share) {
		r.divide(level, c)
	}
	return newTree(old.levels, r.leafOf), nil
}

// Divided returns the clusters of a level of old whose subtrees Renew has divided anew: those with a label that is in
// another leaf of renewed.
func Divided(old, renewed *Tree, from []int32) (level int, clusters []int32) {
	level = old.renewLevel()
	for i, j := range from {
		if j < 0 || int(j) >= len(old.leafOf) || old.leafOf[j] < 0 || renewed.leafOf[i] < 0 ||
			renewed.leafOf[i] == old.leafOf[j] {
			continue
		}
		clusters = append(clusters, old.Cluster(level, int(j)))
	}
	slices.Sort(clusters)
	return level, slices.Compact(clusters)
}

type renewal struct {
	old    *Tree
	x      Features
	opt    Options
	leafOf []int32
}

// renewLeaves is the least number of leaves of a subtree that is divided anew, in a tree with at least that many.
const renewLeaves = 16

// renewLevel returns the finest level whose clusters have at least renewLeaves leaves.
func (t *Tree) renewLevel() int {
	level := 0
	for l := range t.Levels() {
		if t.leavesPer(l) >= renewLeaves {
			level = l
		}
	}
	return level
}

// enter puts new labels into leaves.
func (r *renewal) enter(fresh []int32) {
	if len(fresh) == 0 {
		return
	}
	kept := newTree(r.old.levels, r.leafOf)
	centres := make([][]float32, kept.Levels())
	d := r.x.width()
	for level := range centres {
		centres[level] = kept.centres(level, r.x, r.opt.Workers)
	}
	leaf := make([]int32, len(fresh))
	parallel.ForEach(len(fresh), 16, parallel.Workers(r.opt.Workers), func(_, _, a, b int) {
		product := make([]float32, 1)
		for k := a; k < b; k++ {
			lo, hi, best := int32(0), int32(kept.Clusters(0)), int32(0)
			for level := range centres {
				nearest := float32(-2)
				for c := lo; c < hi; c++ {
					r.x.dots(fresh[k:k+1], centres[level][int(c)*d:(int(c)+1)*d], product, 1)
					if product[0] > nearest {
						nearest, best = product[0], c
					}
				}
				if level+1 < len(centres) {
					lo, hi = kept.Children(level, best)
				}
			}
			leaf[k] = best
		}
	})
	for k, i := range fresh {
		r.leafOf[i] = leaf[k]
	}
}

// centres returns the normalized sums of the clusters of a level; those of empty clusters are zero.
func (t *Tree) centres(level int, x Features, workers int) []float32 {
	d := x.width()
	out := make([]float32, t.Clusters(level)*d)
	parallel.ForEach(t.Clusters(level), 1, parallel.Workers(workers), func(_, c, _, _ int) {
		members := t.Members(level, int32(c))
		sum := out[c*d : (c+1)*d]
		x.accumulate(members, slices.Repeat([]int8{1}, len(members)), sum, 1)
		vector.Normalize(sum)
	})
	return out
}

// changed returns the clusters of a level of which more than share of the labels are new or gone.
func (r *renewal) changed(level int, fresh, gone []int32, share float64) (changed []int32) {
	now, other := make([]int, r.old.Clusters(level)), make([]int, r.old.Clusters(level))
	per := int32(r.old.leavesPer(level))
	for _, leaf := range r.leafOf {
		if leaf >= 0 {
			now[leaf/per]++
		}
	}
	for _, i := range fresh {
		other[r.leafOf[i]/per]++
	}
	for _, leaf := range gone {
		if leaf >= 0 {
			other[leaf/per]++
		}
	}
	for c := range now {
		if other[c] > 0 && float64(other[c]) > share*float64(now[c]) {
			changed = append(changed, int32(c))
		}
	}
	return changed
}

// divide divides the labels of a cluster anew. One of fewer labels than leaves stays as it is.
func (r *renewal) divide(level int, cluster int32) {
	per := int32(r.old.leavesPer(level))
	var members []int32
	for i, leaf := range r.leafOf {
		if leaf >= 0 && leaf/per == cluster {
			members = append(members, int32(i))
		}
	}
	if len(members) < int(per) {
		return
	}
	d := &division{r.x, fanOuts(r.old.levels), r.opt}
	top := part{hi: len(members), level: level, parts: 1, path: 1<<40 + uint64(cluster)}
	for leaf, p := range d.run(top, members) {
		for _, i := range members[p.lo:p.hi] {
			r.leafOf[i] = cluster*per + int32(leaf)
		}
	}
}
