package trainer

import (
	"fmt"
	"math"

	"giantstream/train/numeric"
)

// Options of Train. There are no defaults: the objectives have those that suit them.
type Options struct {
	// Stages is how many times the rates rise and fall.
	Stages int
	// Epochs is how often training goes through the instances, over all
	// stages together. Steps, if given, says instead how many steps each
	// stage takes.
	Epochs float64
	Steps  []int64
	// Batch is the number of instances per step.
	Batch int
	// Rate is the network's highest learning rate. It rises over the first Warmup of a
	// stage's steps, a share, and then falls to zero.
	Rate, Warmup float64
	// Patience is how many epochs of a stage without a better validation score end it.
	Patience int
	// The order of instances in an epoch is that of hashes of Seed, Stream, the epoch and the instance's key. So two
	// trainings have the instances of both in the same order.
	Seed, Stream uint64
	Keys         []uint64 // of each node
}

func (o Options) check() error {
	switch {
	case o.Batch < 1 || o.Patience < 1:
		return fmt.Errorf("train: batch %d and patience %d must be positive", o.Batch, o.Patience)
	case !(o.Epochs > 0) || math.IsInf(o.Epochs, 0):
		return fmt.Errorf("train: %g epochs; use a positive number", o.Epochs)
	case !(o.Rate > 0) || !(o.Warmup >= 0 && o.Warmup <= 1):
		return fmt.Errorf("train: the rate %g must be positive, the warm-up %g a share", o.Rate, o.Warmup)
	case o.Steps != nil && len(o.Steps) != o.Stages:
		return fmt.Errorf("train: steps for %d stages, the schedule has %d", len(o.Steps), o.Stages)
	}
	for _, s := range o.Steps {
		if s < 1 {
			return fmt.Errorf("train: a stage of %d steps", s)
		}
	}
	return nil
}

// plan returns the number of steps of each stage for an epoch of the given
// number of instances.
func (o Options) plan(instances int) []int64 {
	if o.Steps != nil {
		return o.Steps
	}
	epoch := float64((instances + o.Batch - 1) / o.Batch)
	steps := make([]int64, o.Stages)
	for i := range steps {
		steps[i] = max(1, int64(math.Round(o.Epochs*epoch/float64(o.Stages))))
	}
	return steps
}

// fraction is the share of the highest rate for step s (from 0) of a stage.
func (o Options) fraction(s, steps int64) float64 {
	if o.Warmup == 0 {
		return 1 - float64(s)/float64(steps) // the last bits of (steps-s)/steps are others
	}
	return numeric.WarmupFraction(s, steps, o.Warmup)
}
