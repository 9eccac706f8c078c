package fit

import (
	"context"
	"slices"

	"giantstream/featurize/labeltree"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/objectives/xrt"
)

// How the n-grams of a warm start are trained, chosen on citeseer and amazon-products
// (docs/measurements/2026-11-23.md, "Warm starts"). A table that begins again at the rate of a first training moves
// as far as one from scratch: row-wise Adagrad does not know how much a row has learned before.
const (
	settledRate   = 0.0007
	settledEpochs = 3

	// renewShare is the share of the labels of a subtree that must be new or gone to divide it anew.
	renewShare = 0.1
)

// Warm is what a training goes on from. Of the parent, the views beside the table of n-grams remain, and the map from
// all of them to embeddings.
type Warm struct {
	Parent *hybrid.Encoder
	// Changed is how many nodes have other texts or links than the parent was trained on.
	Changed int
}

// start is the linear encoder that the table begins at: the parent's where it remains.
func (t *Training) start(ctx context.Context) (*linear.Encoder, error) {
	if t.Warm != nil {
		return linear.New(t.Vectorizer, t.Projection, t.Warm.Parent.Views().Solution, t.Dim)
	}
	e, _, err := t.solve(ctx)
	return e, err
}

// settle has the training of a table go through all instances, those too that others are validated on: the parent was
// trained on some of them, and its embeddings say nothing of links that it has not seen.
func (w *Warm) settle(b *xrt.Bag, bounded bool) {
	if !bounded {
		b.Instances = slices.Concat(b.Instances, b.HeldOut)
		slices.Sort(b.Instances)
	}
	b.Before = w.Parent.Views().Table
	b.HeldOut, b.Rate, b.Epochs = nil, settledRate, settledEpochs
}

// rejoin joins a table to the other views of the parent as the parent does.
func (t *Training) rejoin(n table) (*hybrid.Encoder, error) {
	e := t.Warm.Parent
	v := hybrid.Views{Vectorizer: t.Vectorizer, Projection: t.Projection, Table: n.model,
		Solution: n.start.Weights(), TextWeight: e.Views().TextWeight}
	return hybrid.New(v, slices.Clone(e.Join()), e.Dim())
}

// RenewTree returns the tree for other labels: label i was from[i] of it, or is new for -1.
func RenewTree(before *labeltree.Tree, from []int32, x labeltree.Features, s Settings, workers int) (
	*labeltree.Tree, error) {
	return labeltree.Renew(before, from, x, renewShare, TreeOptions(s, workers))
}
