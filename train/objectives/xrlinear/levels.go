package xrlinear

import (
	"slices"

	"giantstream/featurize/sparse"
)

// level is one level of the problem. Its nodes are numbered so that the
// children of a parent follow each other.
type level struct {
	// start has the first child of each parent: parent p's children are
	// start[p] to start[p+1].
	start []int32
	// y is instances × nodes: which nodes hold a label of the instance.
	y *sparse.Matrix
}

func (l *level) nodes() int { return int(l.start[len(l.start)-1]) }

// pose makes the levels of the problem: those of the tree, then the labels. It also returns the
// label of each node of the last level. Labels outside the tree are left out.
func pose(y *sparse.Matrix, t Tree) (levels []level, labels []int32) {
	leaves := t.Clusters(t.Levels() - 1)
	members := make([][]int32, leaves)
	for l := range t.Labels() {
		if c := t.Cluster(t.Levels()-1, l); c >= 0 {
			members[c] = append(members[c], int32(l))
		}
	}
	node := make([]int32, t.Labels()) // label → node of the last level
	for l := range node {
		node[l] = -1
	}
	bottom := []int32{0}
	for _, list := range members {
		for _, l := range list {
			node[l] = int32(len(labels))
			labels = append(labels, l)
		}
		bottom = append(bottom, int32(len(labels)))
	}
	for k := range t.Levels() {
		levels = append(levels, level{
			start: childStarts(t, k, members),
			y:     targets(y, t.Clusters(k), func(l int32) int32 { return t.Cluster(k, int(l)) }),
		})
	}
	last := level{start: bottom, y: targets(y, len(labels), func(l int32) int32 { return node[l] })}
	return append(levels, last), labels
}

// childStarts returns where the children of each cluster of level k-1 begin.
// Clusters are numbered so that those of one parent follow each other; a
// cluster without labels belongs to the parent of the one before.
func childStarts(t Tree, k int, members [][]int32) []int32 {
	if k == 0 {
		return []int32{0, int32(t.Clusters(0))}
	}
	parent := make([]int32, t.Clusters(k))
	for c := range parent {
		parent[c] = -1
	}
	for _, list := range members {
		if len(list) > 0 {
			parent[t.Cluster(k, int(list[0]))] = t.Cluster(k-1, int(list[0]))
		}
	}
	start := make([]int32, t.Clusters(k-1)+1)
	at := int32(0)
	for c, p := range parent {
		at = max(at, p)
		start[at+1] = int32(c) + 1
	}
	for p := range len(start) - 1 {
		start[p+1] = max(start[p+1], start[p])
	}
	start[len(start)-1] = int32(len(parent))
	return start
}

// targets is instances × cols: the distinct columns of each row's labels.
func targets(y *sparse.Matrix, cols int, column func(label int32) int32) *sparse.Matrix {
	m := &sparse.Matrix{Cols: cols, Start: make([]int64, 1, y.Rows+1)}
	var row []int32
	for i := range y.Rows {
		row = row[:0]
		for _, l := range y.Row(i).Index {
			if c := column(l); c >= 0 {
				row = append(row, c)
			}
		}
		slices.Sort(row)
		m.Append(sparse.Vector{Index: slices.Compact(row)})
	}
	return m
}
