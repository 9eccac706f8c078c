package heads

import (
	"errors"
	"fmt"
	"slices"

	"giantstream/featurize/sparse"
)

// Kind names a head.
type Kind string

// The heads.
const (
	MLP  Kind = "mlp"
	SGC  Kind = "sgc"
	SAGE Kind = "graphsage"
)

// ErrKind: there is no such head.
var ErrKind = errors.New("unknown head; there are mlp, sgc and graphsage")

// ErrClasses: there are not two classes to tell apart.
var ErrClasses = errors.New("the training nodes have fewer than two classes")

// Data is what heads learn from, for n nodes.
type Data struct {
	// Vectors are the embeddings, n×Dim.
	Vectors []float32
	Dim     int
	// Neighbours is the n×n adjacency by position; an MLP needs none.
	Neighbours *sparse.Matrix
	// Classes are the nodes' classes, "" where unknown.
	Classes []string
}

func (d Data) check(kind Kind) error {
	n := len(d.Classes)
	if d.Dim < 1 || len(d.Vectors) != n*d.Dim {
		return fmt.Errorf("heads: %d numbers are not %d embeddings of dimension %d", len(d.Vectors), n, d.Dim)
	}
	if kind == MLP {
		return nil
	}
	if d.Neighbours == nil || d.Neighbours.Rows != n || d.Neighbours.Cols != n {
		return fmt.Errorf("heads: %s needs the adjacency of all %d nodes", kind, n)
	}
	return nil
}

// labels numbers the classes, in the order of their names; unknown is -1.
func (d Data) labels() (names []string, label []int32) {
	names = slices.Compact(slices.Sorted(slices.Values(d.Classes)))
	names = slices.DeleteFunc(names, func(c string) bool { return c == "" })
	label = make([]int32, len(d.Classes))
	for i, c := range d.Classes {
		at, ok := slices.BinarySearch(names, c)
		if label[i] = int32(at); !ok {
			label[i] = -1
		}
	}
	return names, label
}

// Options of Train. The zero value of each field stands for its default.
type Options struct {
	// Hidden is the width of the hidden layer; 0 means 256. SGC has none.
	Hidden int
	// Dropout is the share of the hidden layer that is left out in each
	// step; 0 means 0.5, a negative number none.
	Dropout float64
	// Rate is Adam's learning rate, 0 means 0.01 for SGC and 0.003 for the others; Decay the
	// weight decay, 0 means 5e-4, a negative number none.
	Rate, Decay float64
	// Epochs is how often training goes through the training nodes at
	// most; 0 means 200. Patience is how many epochs without a better
	// validation end it; 0 means 20.
	Epochs, Patience int
	// Batch is the number of nodes per step; 0 means 512.
	Batch int
	// Hops is how far SGC smooths; 0 means 2.
	Hops int
	// Fanout is how many neighbours SAGE samples of each node, of the nodes
	// to classify and of their neighbours; 0 means 15 and 10. Nodes that have no more
	// keep them all.
	Fanout [2]int
	Seed   uint64
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

func (o Options) withDefaults(kind Kind) Options {
	for _, f := range []struct {
		value     *int
		otherwise int
	}{
		{&o.Hidden, 256}, {&o.Epochs, 200}, {&o.Patience, 20}, {&o.Batch, 512}, {&o.Hops, 2}, {&o.Fanout[0],
			15}, {&o.Fanout[1], 10},
	} {
		if *f.value == 0 {
			*f.value = f.otherwise
		}
	}
	rate := 0.003
	if kind == SGC {
		rate = 0.01
	}
	for _, f := range []struct {
		value     *float64
		otherwise float64
	}{{&o.Dropout, 0.5}, {&o.Rate, rate}, {&o.Decay, 5e-4}} {
		if *f.value == 0 {
			*f.value = f.otherwise
		}
	}
	o.Dropout, o.Decay = max(o.Dropout, 0), max(o.Decay, 0)
	return o
}

func (o Options) check() error {
	switch {
	case min(o.Hidden, o.Epochs, o.Patience, o.Batch, o.Hops, o.Fanout[0], o.Fanout[1]) < 1:
		return fmt.Errorf("heads: sizes, epochs, patience, hops and fanout must be positive: %+v", o)
	// NaN fails the comparisons.
	case !(o.Dropout < 1) || !(o.Rate > 0) || !(o.Decay < 1):
		return fmt.Errorf("heads: dropout %v and decay %v must be below 1, the rate %v above 0", o.Dropout,
			o.Decay, o.Rate)
	}
	return nil
}
