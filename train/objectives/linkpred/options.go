package linkpred

import (
	"errors"
	"fmt"

	"giantstream/featurize/sparse"
)

// ErrEmpty: no anchor has a neighbour, so there is nothing to learn from.
var ErrEmpty = errors.New("no anchor has a neighbour; is the graph without edges?")

// Graph is what Train learns from.
type Graph struct {
	// Neighbours is the adjacency by position.
	Neighbours *sparse.Matrix
	// Keys are the nodes' keys, by which everything is drawn for them (numeric.Keys).
	Keys []uint64
	// Anchors are the nodes to train on. Those without neighbour are left out.
	Anchors []int32
}

// Options of Train. The zero value of each field stands for its default.
type Options struct {
	// Epochs is how often each anchor is taken; 0 means 4.
	Epochs int
	// Batch is the number of triplets per step; 0 means 64.
	Batch int
	// Rate is the highest learning rate; 0 means 1e-4. It rises over the
	// first tenth of the steps and then falls to zero.
	Rate float64
	// Margin is how much nearer, as a cosine, a neighbour has to be than
	// another node; 0 means 0.5.
	Margin float64
	// Patience is how many epochs without a better validation score end the
	// training; 0 means 2.
	Patience int
	Seed     uint64
}

func (o Options) withDefaults() Options {
	for _, f := range []struct {
		value     *int
		otherwise int
	}{{&o.Epochs, 4}, {&o.Batch, 64}, {&o.Patience, 2}} {
		if *f.value == 0 {
			*f.value = f.otherwise
		}
	}
	if o.Rate == 0 {
		o.Rate = 1e-4
	}
	if o.Margin == 0 {
		o.Margin = 0.5
	}
	return o
}

func (o Options) check() error {
	// NaN fails the comparisons.
	if o.Epochs < 1 || o.Batch < 1 || o.Patience < 1 || !(o.Rate > 0) || !(o.Margin > 0) {
		return fmt.Errorf("linkpred: epochs, batch, patience, rate and margin must be positive: %+v", o)
	}
	return nil
}

// warmup is the share of the steps over which the rate rises.
const warmup = 0.1
