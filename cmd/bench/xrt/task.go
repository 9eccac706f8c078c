package main

import (
	"context"
	"math/rand/v2"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/linear"
	"giantstream/train/encoders/wide"
	"giantstream/train/generation/eval"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrt"
)

const (
	// rank, labelDim and leafSize are those of a generation by default.
	rank, labelDim, leafSize = 512, 256, 16
	// One in heldOut instances validates instead of training.
	heldOut = 20
)

type taskOptions struct {
	labels bool // the labels are a level of their own
	pairs  int  // how many neighbours of a held-out instance are compared
	ngrams int  // how many n-grams have a vector beside the model
}

// task is a graph's neighbourhood prediction.
type task struct {
	seed  uint64
	set   xrt.Set
	pairs *eval.Pairs // that validate

	// The n-grams beside the model start from these.
	vectorizer *tfidf.Model
	features   *sparse.Matrix
	projection *projection.Projection
	solution   []float32 // rank × labelDim
}

// newTask clusters the labels of g, as a generation does, and poses the task.
func newTask(ctx context.Context, g *train.Graph, o taskOptions, seed uint64) (*task, error) {
	model, err := stage.FitTFIDF(g.Texts, tfidf.DefaultOptions(), 0)
	if err != nil {
		return nil, err
	}
	x := model.TransformAll(g.Texts, 0)
	p, err := projection.Fit(x, rank, projection.Options{})
	if err != nil {
		return nil, err
	}
	all := p.ApplyAll(x, 0)
	first := make([]float32, 0, g.Len()*labelDim)
	for i := range g.Len() {
		first = append(first, all[i*rank:i*rank+labelDim]...)
	}
	sketch, err := pifa.FromGraph(first, labelDim, g.Neighbours, pifa.Sum, 0)
	if err != nil {
		return nil, err
	}
	features, err := labeltree.Dense(sketch.Normalized(), labelDim)
	if err != nil {
		return nil, err
	}
	tree, err := labeltree.Build(features, labeltree.Options{MaxLeafSize: leafSize})
	if err != nil {
		return nil, err
	}
	t := &task{seed: seed, vectorizer: model, features: x, projection: p}
	if o.ngrams > 0 {
		t.solution, _, err = linear.Fit(ctx, linear.Data{
			Text: func(i int, out []float32) { copy(out, all[i*rank:(i+1)*rank]) }, Rank: rank,
			Labels: sketch.Normalized(), Dim: labelDim, Neighbours: g.Neighbours,
		}, linear.Options{Seed: seed}, nil)
		if err != nil {
			return nil, err
		}
	}
	if o.labels {
		t.pose(g, xmc.WithLabels(tree), o)
	} else {
		t.pose(g, tree, o)
	}
	return t, nil
}

// streamOrder separates the order of instances from other uses of the seed.
const streamOrder = 2

func (t *task) pose(g *train.Graph, tree xmc.Tree, o taskOptions) {
	t.set = xrt.Set{Neighbours: g.Neighbours, Tree: tree, Stream: streamOrder}
	r := rand.New(rand.NewPCG(t.seed, 1))
	var held []int32
	for i := range g.Len() {
		switch {
		case len(g.Neighbours.Row(i).Index) == 0:
		case r.IntN(heldOut) == 0:
			held = append(held, int32(i))
		default:
			t.set.Instances = append(t.set.Instances, int32(i))
		}
	}
	t.pairs = eval.DrawPairs(g.Neighbours, held, o.pairs, t.seed)
}

// ngrams trains a table of n-grams of dimension dim alone.
func (t *task) ngrams(ctx context.Context, rows, dim int, hooks trainer.Hooks) (*bag.Model, error) {
	table, err := wide.Start(t.features, t.projection, t.solution, labelDim, dim, rows, 0)
	if err != nil {
		return nil, err
	}
	_, err = xrt.TrainTable(ctx, table, t.features, t.set, 0, t.seed, 0, hooks, nil)
	return table, err
}

// beside returns a model in training and n-grams as one network, and its encoder.
func (t *task) beside(deep train.Network, encoder wide.Deep, table *bag.Model) (train.Network, train.Encoder, error) {
	net, err := wide.NewTuner(deep, t.features, table, wide.Options{})
	if err != nil {
		return nil, nil, err
	}
	e, err := wide.New(encoder, t.vectorizer, table)
	return net, e, err
}
