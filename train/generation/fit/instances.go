package fit

import (
	"cmp"
	"context"
	"io"

	"giantstream/train"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrt"
	"giantstream/train/sampler"
)

// Streams of random numbers, besides those of other parts of a build.
const (
	streamHoldOut = 'H'
	streamPairs   = 'P'
	streamOrder   = 'O'
)

// HasInstances says whether a graph has any node to train on: with a neighbour, and no more than
// s.MaxDegree of them.
func HasInstances(g *train.Graph, s Settings) bool {
	for i := range g.Len() {
		if k := len(g.Neighbours.Row(i).Index); k > 0 && k <= s.MaxDegree {
			return true
		}
	}
	return false
}

// Instances returns the instances that a network is trained on, those that are held out, and pairs of
// the latter to validate on, nil for graphs that are too small to hold any out.
func (t *Training) Instances() (instances, held []int32, pairs *eval.Pairs) {
	s := t.Settings
	instances, held = t.holdOut(streamHoldOut)
	if len(held) > 0 {
		pairs = eval.DrawPairs(t.Graph.Neighbours, numeric.Keys(t.Graph.IDs), held, eval.PairsEach, s.Seed, streamPairs)
	}
	return instances, held, pairs
}

// holdOut divides the instances into those to train on, no more than Settings.MaxInstances of them, and those that
// validate.
func (t *Training) holdOut(stream uint64) (instances, held []int32) {
	s, neighbours, keys := t.Settings, t.Graph.Neighbours, numeric.Keys(t.Graph.IDs)
	instances, held = eval.HoldOut(neighbours, keys, s.MaxDegree, s.Seed, stream)
	if s.MaxInstances > 0 {
		kind := cmp.Or(s.Sampler, sampler.Uniform)
		instances = sampler.Select(kind, neighbours, keys, instances, s.MaxInstances, s.Seed, t.Resources.Workers)
	}
	return instances, held
}

// trainingSet is the instances of a training, and pairs of held-out ones to validate on.
type trainingSet struct {
	xrt.Set
	pairs *eval.Pairs // nil for none
}

func (t *Training) trainingSet() *trainingSet {
	set := &trainingSet{}
	set.Neighbours, set.Keys = t.Graph.Neighbours, numeric.Keys(t.Graph.IDs)
	set.Tree, set.Stream = xmc.Finest(t.Tree), streamOrder
	set.Set.Instances, set.HeldOut, set.pairs = t.Instances()
	return set
}

// hooks connect a training, of embeddings of dimension dim, to its checkpoints and to the pairs that
// it is validated on, nil for none.
func (t *Training) hooks(dim int, pairs *eval.Pairs, c Checkpoints, state io.Reader) trainer.Hooks {
	h := trainer.Hooks{Due: c.Due, Resume: state,
		Save: func(ctx context.Context, _ int64, state io.WriterTo) error { return t.save(ctx, c, state) }}
	if pairs != nil {
		h.Validate = pairs.Validate(dim)
	}
	return h
}
