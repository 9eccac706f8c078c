package xrlinear

import (
	"errors"
	"fmt"

	"giantstream/featurize/sparse"
)

// ErrNoLabels: there is nothing to predict.
var ErrNoLabels = errors.New("no instance has a label that is in the tree")

// Options of Train; the zero value of each field stands for its default,
// which is PECOS's.
type Options struct {
	// Cost is C, the weight of the loss; 0 means 1.
	Cost float64
	// Epsilon is the tolerance: the projected gradients of a solution lie within
	// ±Epsilon/2. 0 means 0.1.
	Epsilon float64
	// Threshold is the size below which a weight is dropped; 0 means 0.1.
	Threshold float32
	// Passes bounds the sweeps over the instances of a parent; 0 means 100.
	Passes int
	// Matched > 0 adds matcher-aware negatives: each instance also trains the children of the
	// Matched clusters that the levels above score best.
	Matched int
	// Seed determines the order of the coordinates.
	Seed uint64
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

func (o Options) withDefaults() Options {
	if o.Cost <= 0 {
		o.Cost = 1
	}
	if o.Epsilon <= 0 {
		o.Epsilon = 0.1
	}
	if o.Threshold <= 0 {
		o.Threshold = 0.1
	}
	if o.Passes <= 0 {
		o.Passes = 100
	}
	return o
}

// Tree is what Train needs of a label tree; *labeltree.Tree is one.
type Tree interface {
	Levels() int
	Labels() int
	Clusters(level int) int
	// Cluster returns the cluster that holds a label, -1 if none does.
	Cluster(level, label int) int32
}

func check(x, y *sparse.Matrix, t Tree) error {
	switch {
	case x.Rows != y.Rows:
		return fmt.Errorf("xrlinear: %d rows of features and %d of labels", x.Rows, y.Rows)
	case y.Cols != t.Labels():
		return fmt.Errorf("xrlinear: %d labels, the tree has %d", y.Cols, t.Labels())
	case t.Levels() < 1:
		return errors.New("xrlinear: a tree without levels")
	}
	return nil
}
