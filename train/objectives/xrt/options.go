package xrt

import (
	"cmp"

	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
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
	Ridge      Start = iota // the linear solution on the present embeddings
	Inherit                 // their parents' vectors; the first level as Ridge
	Random                  // small random vectors
	Linear                  // L2-loss SVMs on the present embeddings, as in PECOS (xrlinear.Heads)
	Centroid                // the direction of the mean of their instances' present embeddings
	LabelMeans              // the direction of the mean of their labels' vectors (Set.Labels)
)

// Weights says how much instances weigh.
type Weights uint8

// The weights. Instances with more labels have less noisy targets, but hubs must not rule.
const (
	OverBatch Weights = iota // the root of the number of labels, 1 on average in each batch
	OverSet                  // the root of the number of labels, 1 on average in the training set
	Uniform                  // all the same
)

// Options of Train. The zero value of each field stands for its default.
type Options struct {
	// Name is the name of the stage that progress shows; "" means "xr-transformer".
	Name     string
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
	// means 0.1. NoWarmup is none.
	Warmup   float64
	NoWarmup bool
	// Heads say how candidates are chosen and what they cost. Their Matched
	// of 0 means 20, as in the paper, and their Scale of 0 means 1: heads that
	// begin unsure leave more to the encoder, see docs/measurements/2026-11-23.md.
	Heads xmc.Options
	Start Start
	// NoBias has heads without a bias.
	NoBias bool
	// Sample is how many instances heads start from; 0 means 4096.
	Sample int
	// Raw shows the heads the pooled vectors as they are, and not their
	// directions, which is what the embeddings are.
	Raw bool
	// Weights are those of the instances.
	Weights Weights
	// SumGradients gives the network the gradient of a batch's summed loss instead of that of
	// its mean, for optimizers that do not see the scale of gradients: a short last batch
	// then counts as much as its instances.
	SumGradients bool
	// Links is the weight of the contrastive part: each instance must be nearer to one of its
	// neighbours than to the neighbours of the other instances of the batch; 0 leaves it out. The
	// batch is then the number of negatives, and a network of bounded batches sees fewer.
	Links float64
	// Temperature divides the cosines of the contrastive part; 0 means 0.07.
	Temperature float64
	// Patience is how many epochs of a stage without a better validation score end it; 0 means 2.
	Patience int
	Seed     uint64
	// Workers is the number of goroutines besides the network's, 0 for one
	// per CPU. It does not change the result.
	Workers int
}

// withDefaults completes options for a training set of n instances.
func (o Options) withDefaults(n int) Options {
	o.Name = cmp.Or(o.Name, "xr-transformer")
	o.Batch = cmp.Or(o.Batch, 64)
	o.Sample = cmp.Or(o.Sample, 4096)
	o.Patience = cmp.Or(o.Patience, 2)
	o.Heads.Matched = cmp.Or(o.Heads.Matched, 20)
	o.Heads.Scale = cmp.Or(o.Heads.Scale, 1)
	o.Epochs = cmp.Or(o.Epochs, min(10, max(3, 200_000/float64(n))))
	o.Rate = cmp.Or(o.Rate, 3e-4)
	o.HeadRate = cmp.Or(o.HeadRate, 3e-3)
	o.Warmup = cmp.Or(o.Warmup, 0.1)
	o.Temperature = cmp.Or(o.Temperature, 0.07)
	if o.NoWarmup {
		o.Warmup = 0
	}
	return o
}

// loop returns the options of the training loop.
func (n *neighbourhoods) loop() trainer.Options {
	return trainer.Options{
		Stages: n.stages(), Epochs: n.o.Epochs, Steps: n.o.Steps, Batch: n.o.Batch, Rate: n.o.Rate, Warmup: n.o.Warmup,
		Patience: n.o.Patience, Seed: n.o.Seed, Stream: n.set.Stream,
		Keys: n.set.Keys,
	}
}
