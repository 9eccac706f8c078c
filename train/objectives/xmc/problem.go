package xmc

import (
	"errors"
	"fmt"
	"slices"

	"giantstream/featurize/sparse"
)

// ErrNoLevels: the tree has no level with at least two clusters.
var ErrNoLevels = errors.New("the label tree has no level to predict; the graph has too few linked nodes")

// Level is one resolution of the label tree.
type Level struct {
	Clusters int
	// Parent is each cluster's cluster at the level above, nil at the first.
	Parent []int32
	// Targets is instances × Clusters: how many of the instance's labels
	// each cluster holds, or the sum of their weights.
	Targets *sparse.Matrix

	children, start []int32
}

// Problem is the levels to predict, coarse to fine.
type Problem struct{ Levels []Level }

// Tree is what Problem needs of a label tree; *labeltree.Tree is one.
type Tree interface {
	Levels() int
	Clusters(level int) int
	// Cluster returns the cluster that holds a label, -1 if none does.
	Cluster(level, label int) int32
}

// FromTree poses the problem for every level of a tree that has at least two
// clusters. Row i of neighbours are the labels of instance i, its values their
// weights, above 0; labels that are not in the tree are no targets.
func FromTree(t Tree, neighbours *sparse.Matrix) (*Problem, error) {
	p := &Problem{}
	previous := -1
	for level := range t.Levels() {
		l := Level{Clusters: t.Clusters(level)}
		if l.Clusters < 2 {
			continue
		}
		if previous >= 0 {
			l.Parent = make([]int32, l.Clusters)
			for label := range neighbours.Rows {
				if c := t.Cluster(level, label); c >= 0 {
					l.Parent[c] = t.Cluster(previous, label)
				}
			}
		}
		l.Targets = targets(t, level, l.Clusters, neighbours)
		p.Levels = append(p.Levels, l)
		previous = level
	}
	if len(p.Levels) == 0 {
		return nil, fmt.Errorf("xmc: %w", ErrNoLevels)
	}
	return p, p.prepare()
}

// Targets returns, per level, the clusters that hold the labels of an
// instance and how many.
func (p *Problem) Targets(instance int) []sparse.Vector {
	rows := make([]sparse.Vector, len(p.Levels))
	for t := range rows {
		rows[t] = p.Levels[t].Targets.Row(instance)
	}
	return rows
}

func targets(t Tree, level, clusters int, neighbours *sparse.Matrix) *sparse.Matrix {
	m := &sparse.Matrix{Cols: clusters, Start: make([]int64, 1, neighbours.Rows+1)}
	count := make([]float32, clusters)
	var row sparse.Vector
	for i := range neighbours.Rows {
		row.Index, row.Value = row.Index[:0], row.Value[:0]
		labels := neighbours.Row(i)
		for k, label := range labels.Index {
			c := t.Cluster(level, int(label))
			if c < 0 {
				continue
			}
			if count[c] == 0 {
				row.Index = append(row.Index, c)
			}
			count[c] += labels.Weight(k)
		}
		slices.Sort(row.Index)
		for _, c := range row.Index {
			row.Value = append(row.Value, count[c])
			count[c] = 0
		}
		m.Append(row)
	}
	return m
}

// prepare checks the levels and lists the children of each cluster.
func (p *Problem) prepare() error {
	for t := range p.Levels {
		l := &p.Levels[t]
		if t == 0 {
			continue
		}
		above := p.Levels[t-1].Clusters
		if len(l.Parent) != l.Clusters {
			return fmt.Errorf("xmc: level %d has %d clusters and %d parents", t, l.Clusters, len(l.Parent))
		}
		l.start = make([]int32, above+1)
		for c, parent := range l.Parent {
			if parent < 0 || int(parent) >= above {
				return fmt.Errorf("xmc: cluster %d of level %d has parent %d, the level above has %d clusters",
					c, t, parent, above)
			}
			l.start[parent+1]++
		}
		for c := range above {
			l.start[c+1] += l.start[c]
		}
		l.children = make([]int32, l.Clusters)
		next := append([]int32(nil), l.start[:above]...)
		for c, parent := range l.Parent {
			l.children[next[parent]] = int32(c)
			next[parent]++
		}
	}
	return nil
}

// childrenOf returns the clusters of this level below a cluster of the level
// above, ascending.
func (l *Level) childrenOf(parent int32) []int32 {
	return l.children[l.start[parent]:l.start[parent+1]]
}
