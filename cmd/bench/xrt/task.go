package main

import (
	"context"
	"iter"
	"math/rand/v2"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/targets"
	"giantstream/featurize/tfidf"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/bert"
	"giantstream/train/eval"
	"giantstream/train/linear"
	"giantstream/train/wide"
	"giantstream/train/xmc"
	"giantstream/train/xrt"
)

const (
	// rank, labelDim and leafSize are those of a generation by default.
	rank, labelDim, leafSize = 512, 256, 16
	// heldOut is one in how many instances judges instead of training.
	heldOut = 20
)

type taskOptions struct {
	labels bool // is a level of its own
	pairs  int  // neighbours of a held-out instance that are compared
	ngrams int  // that have a vector beside the model
}

// task is a graph's neighbourhood prediction.
type task struct {
	seed     uint64
	examples []xrt.Example
	nodes    []int32 // of the examples
	levels   []xmc.Level
	pairs    *eval.Pairs
	texts    []string // of all nodes
	dim      int

	// What n-grams beside the model start from.
	vectorizer *tfidf.Model
	features   *sparse.Matrix
	projection *projection.Projection
	solution   []float32 // rank × labelDim
}

// newTask clusters the labels of g, as a generation does, and poses the task.
func newTask(ctx context.Context, g *train.Graph, dim int, o taskOptions, seed uint64) (*task, error) {
	f, err := tfidf.NewFitter(tfidf.DefaultOptions())
	if err != nil {
		return nil, err
	}
	f.AddAll(g.Texts, 0)
	model, err := f.Fit()
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
	t := &task{seed: seed, texts: g.Texts, dim: dim, vectorizer: model, features: x, projection: p}
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

func (t *task) pose(g *train.Graph, tree xmc.LabelTree, o taskOptions) {
	t.levels = xmc.LevelsOf(tree)
	r := rand.New(rand.NewPCG(t.seed, 1))
	var held []int32
	for i := range g.Len() {
		labels := g.Neighbours.Row(i).Index
		if len(labels) == 0 {
			continue
		}
		if r.IntN(heldOut) == 0 {
			held = append(held, int32(i))
			continue
		}
		e := xrt.Example{Text: g.Texts[i]}
		e.Targets, e.Counts = targets.Of(tree, labels)
		t.examples, t.nodes = append(t.examples, e), append(t.nodes, int32(i))
	}
	t.pairs = eval.DrawPairs(g.Neighbours, held, o.pairs, t.seed)
}

// Instances implements xrt.Source.
func (t *task) Instances() int64 { return int64(len(t.examples)) }

// Epoch implements xrt.Source.
func (t *task) Epoch(_ context.Context, epoch int, skip int64) iter.Seq2[xrt.Example, error] {
	return func(yield func(xrt.Example, error) bool) {
		r := rand.New(rand.NewPCG(t.seed, 2+uint64(epoch)))
		for _, i := range r.Perm(len(t.examples))[skip:] {
			if !yield(t.examples[i], nil) {
				return
			}
		}
	}
}

// ngrams trains a table of n-grams of dimension dim alone.
func (t *task) ngrams(ctx context.Context, rows, dim int, hooks xrt.Hooks) (*bag.Model, error) {
	table, err := wide.Start(t.features, t.projection, t.solution, labelDim, dim, rows, 0)
	if err != nil {
		return nil, err
	}
	alone := wide.Task{Vectorizer: t.vectorizer, Features: t.features, Source: t, Levels: t.levels, Seed: t.seed}
	_, err = alone.Train(ctx, table, hooks, nil)
	return table, err
}

// beside returns a model in training and n-grams as one network, and its encoder.
func (t *task) beside(tuner *bert.Tuner, table *bag.Model) (xrt.Network, train.Encoder, error) {
	net, err := wide.NewTuner(tuner, t.vectorizer, table, wide.Options{})
	if err != nil {
		return nil, nil, err
	}
	e, err := wide.New(tuner.Encoder(), t.vectorizer, table)
	return net, e, err
}

// judge is the AUC of held-out instances' neighbours.
func (t *task) judge(_ context.Context, embed func([]string, []float32) error) (float64, error) {
	texts := make([]string, len(t.pairs.Nodes))
	for k, i := range t.pairs.Nodes {
		texts[k] = t.texts[i]
	}
	z := make([]float32, len(texts)*t.dim)
	if err := embed(texts, z); err != nil {
		return 0, err
	}
	return t.pairs.AUC(z, t.dim), nil
}
