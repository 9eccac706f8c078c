package fit

import (
	"context"
	"fmt"
	"io"

	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
	"giantstream/train/objectives/linkpred"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrt"
)

// Streams of random numbers of the bag's validation.
const (
	streamBagHoldOut = 2
	streamBagPairs   = 5
)

// table is a trained table of n-grams, and the linear encoder that it started from.
type table struct {
	start   *linear.Encoder
	model   *bag.Model
	matcher *xmc.Matcher
	report  xrt.BagReport
	pairs   *eval.Pairs // of held-out instances, nil where none are held out
}

// trainNGrams trains a table of n-grams, as the given part of the training, to predict the clusters of
// b's tree. b says what is not common to all tables: tree, name, rows and the weight of the
// contrastive part.
func (t *Training) trainNGrams(ctx context.Context, part Part, b xrt.Bag) (out table, err error) {
	c, err := t.Journal.Checkpoints(ctx, part)
	if err != nil {
		return out, err
	}
	s, neighbours := t.Settings, t.Graph.Neighbours
	b.Neighbours, b.Labels, b.Features, b.Projection = neighbours, t.Labels, t.Features, t.Projection
	b.Keys, b.Key = numeric.Keys(t.Graph.IDs), t.ngramKey
	b.Dim, b.Seed, b.Workers = t.Dim, s.Seed, t.Resources.Workers
	if part == Whole { // else the epochs are those of the transformer
		b.Epochs = s.Epochs
	}
	if out.start, _, err = t.solve(ctx); err != nil {
		return out, fmt.Errorf("start of the n-grams: %w", err)
	}
	b.Share = func(net train.Sliced) train.Network { return t.share(part, net) }
	err = c.Resume(ctx, func(state io.Reader) (err error) {
		b.Weights = out.start.Weights()
		b.Instances, b.HeldOut = t.holdOut(streamBagHoldOut)
		if len(b.HeldOut) > 0 {
			out.pairs = eval.DrawPairs(neighbours, b.Keys, b.HeldOut, eval.PairsEach, s.Seed, streamBagPairs)
		}
		hooks := t.hooks(t.Dim, out.pairs, c, state)
		out.model, out.matcher, out.report, err = b.Train(ctx, hooks, t.Resources.Progress)
		return err
	})
	return out, err
}

// ngramKey is what is drawn for an n-gram is drawn by.
func (t *Training) ngramKey(feature int32) uint64 { return ngramKey(t.Vectorizer, feature) }

// trainBag trains the bag, which starts from the linear encoder.
func trainBag(ctx context.Context, t *Training) (*Trained, error) {
	n, err := t.trainNGrams(ctx, Whole, xrt.Bag{Set: xrt.Set{Tree: t.Tree}, Name: bag.Kind})
	if err != nil {
		return nil, err
	}
	e, err := bag.NewEncoder(t.Vectorizer, n.model)
	return &Trained{Encoder: e, Matcher: n.matcher, Metrics: n.report}, err
}

// bagNetwork returns a bag that starts from the projection of the texts.
func bagNetwork(_ context.Context, t *Training) (*Network, error) {
	const rows, batch, rate, patience = 1 << 16, 256, 0.01, 3 // as the bag that learns neighbourhoods
	workers := t.Resources.Workers
	start, err := bag.Start(t.Features, t.Projection, nil, t.Dim, rows, workers)
	if err != nil {
		return nil, err
	}
	if err := t.Err(); err != nil {
		return nil, err
	}
	net, err := bag.NewNetwork(t.Features, start, bag.NetworkOptions{Key: t.ngramKey, Workers: workers})
	if err != nil {
		return nil, err
	}
	encoder, err := bag.NewEncoder(t.Vectorizer, start)
	return &Network{Network: net, Encoder: encoder, LinkPrediction: linkpred.Options{
		Epochs: xrt.Passes(t.Graph.Len()), Batch: batch, Rate: rate, Patience: patience}}, err
}
