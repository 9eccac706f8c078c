package xrt

import (
	"fmt"
	"math"

	"giantstream/train/internal/optim"
	"giantstream/train/xmc"
)

// Schedule says in which order the levels are trained.
type Schedule uint8

// The schedules.
const (
	Joint        Schedule = iota // all levels in every step
	CoarseToFine                 // one level after the other
)

// Start says where the heads of a level begin.
type Start uint8

// The starts.
const (
	Ridge    Start = iota // the linear solution on the present embeddings
	Inherit               // their parents' vectors; the first level as Ridge
	Random                // small random vectors
	Linear                // L2-loss SVMs on the present embeddings, as in PECOS (xrlinear.Heads)
	Centroid              // the direction of the mean of their instances' present embeddings
)

// Options of Train. The zero value of each field stands for its default.
type Options struct {
	Schedule Schedule
	// Epochs is how often training goes through the instances, over all
	// stages together; 0 means often enough to see 200,000, but at least 3
	// times and at most 10. Steps, if given, says instead how many steps each
	// stage takes: one number per level, or one for Joint.
	Epochs float64
	Steps  []int64
	// Batch is the number of instances per step; 0 means 64.
	Batch int
	// Rate and HeadRate are the highest learning rates of network and heads;
	// 0 means 3e-4 and 3e-3.
	Rate, HeadRate float64
	// Warmup is the share of a stage's steps over which the rates rise; 0
	// means 0.1.
	Warmup float64
	// Heads say how candidates are chosen and what they cost. Their Matched
	// of 0 means 20, as in the paper, and their Scale of 0 means 1: heads that
	// begin unsure leave more to the encoder, see docs/MEASUREMENTS.md.
	Heads xmc.Options
	Start Start
	// Sample is how many instances heads start from; 0 means 4096.
	Sample int
	// Raw shows the heads the pooled vectors as they are, and not their
	// directions, which is what the embeddings are.
	Raw bool
	// Uniform gives all instances the same weight, instead of the square
	// root of their number of labels.
	Uniform bool
	// Patience is how many epochs of a stage without a better score from
	// the judge end it; 0 means 2.
	Patience int
	Seed     uint64
	// Workers is the number of goroutines besides the network's, 0 for one
	// per CPU. It does not change the result.
	Workers int
}

// withDefaults completes options for a training set of n instances.
func (o Options) withDefaults(n int64) Options {
	orInt(&o.Batch, 64)
	orInt(&o.Sample, 4096)
	orInt(&o.Patience, 2)
	orInt(&o.Heads.Matched, 20)
	if o.Heads.Scale == 0 {
		o.Heads.Scale = 1
	}
	orFloat(&o.Epochs, min(10, max(3, 200_000/float64(n))))
	orFloat(&o.Rate, 3e-4)
	orFloat(&o.HeadRate, 3e-3)
	orFloat(&o.Warmup, 0.1)
	return o
}

func orInt(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

func orFloat(v *float64, d float64) {
	if *v == 0 {
		*v = d
	}
}

func (o Options) check(stages int) error {
	switch {
	case o.Batch < 1 || o.Sample < 1 || o.Patience < 1:
		return fmt.Errorf("xrt: batch %d, sample %d and patience %d must be positive", o.Batch, o.Sample, o.Patience)
	case !(o.Epochs > 0) || math.IsInf(o.Epochs, 0):
		return fmt.Errorf("xrt: %g epochs; use a positive number", o.Epochs)
	case !(o.Rate > 0) || !(o.HeadRate > 0) || !(o.Warmup >= 0 && o.Warmup <= 1):
		return fmt.Errorf("xrt: rates %g and %g must be positive, warm-up %g a share", o.Rate, o.HeadRate, o.Warmup)
	case o.Steps != nil && len(o.Steps) != stages:
		return fmt.Errorf("xrt: steps for %d stages, the schedule has %d", len(o.Steps), stages)
	}
	for _, s := range o.Steps {
		if s < 1 {
			return fmt.Errorf("xrt: a stage of %d steps", s)
		}
	}
	return nil
}

// plan returns the number of steps of each stage for an epoch of the given
// number of instances.
func (o Options) plan(stages int, instances int64) []int64 {
	if o.Steps != nil {
		return o.Steps
	}
	epoch := float64((instances + int64(o.Batch) - 1) / int64(o.Batch))
	steps := make([]int64, stages)
	for i := range steps {
		steps[i] = max(1, int64(math.Round(o.Epochs*epoch/float64(stages))))
	}
	return steps
}

// fraction is the share of the highest rate for step s (from 0) of a stage.
func (o Options) fraction(s, steps int64) float64 { return optim.Fraction(s, steps, o.Warmup) }
