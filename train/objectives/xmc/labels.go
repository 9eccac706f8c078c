package xmc

// LabelTree is a label tree that knows its labels; *labeltree.Tree is one.
type LabelTree interface {
	Tree
	// Labels is the number of labels, those in no cluster included.
	Labels() int
}

// maxLabels is the largest number of labels that Finest adds as a level. A head takes 20 bytes for
// each number of an embedding (weights, best weights, gradient and two moments). With maxLabels
// labels and embeddings of 384 numbers that is half a GiB.
const maxLabels = 1 << 16

// Finest returns the tree with the labels themselves as a level, or as it is where
// that would take too much memory.
func Finest(t LabelTree) LabelTree {
	if t.Labels() > maxLabels {
		return t
	}
	return WithLabels(t)
}

// WithLabels returns the tree with one more level below its leaves: the
// labels themselves, but for those in no cluster, numbered in their order.
func WithLabels(t LabelTree) LabelTree {
	w := &withLabels{LabelTree: t, own: make([]int32, t.Labels())}
	for label := range w.own {
		w.own[label] = -1
		if t.Cluster(t.Levels()-1, label) >= 0 {
			w.own[label] = int32(w.clusters)
			w.clusters++
		}
	}
	return w
}

type withLabels struct {
	LabelTree
	own      []int32 // of each label its cluster at the last level, or -1
	clusters int     // of the last level
}

func (w *withLabels) last(level int) bool { return level == w.LabelTree.Levels() }

// Levels implements LabelTree.
func (w *withLabels) Levels() int { return w.LabelTree.Levels() + 1 }

// Clusters implements LabelTree.
func (w *withLabels) Clusters(level int) int {
	if w.last(level) {
		return w.clusters
	}
	return w.LabelTree.Clusters(level)
}

// Cluster implements LabelTree.
func (w *withLabels) Cluster(level, label int) int32 {
	switch {
	case !w.last(level):
		return w.LabelTree.Cluster(level, label)
	case label < 0 || label >= len(w.own):
		return -1
	}
	return w.own[label]
}
