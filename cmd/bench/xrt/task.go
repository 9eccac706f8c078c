package main

import (
	"math/rand/v2"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/train"
	"giantstream/train/generation/eval"
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
}

// task is a graph's neighbourhood prediction.
type task struct {
	seed  uint64
	set   xrt.Set
	pairs *eval.Pairs // that validate
}

// newTask clusters the labels of g, as a generation does, and poses the task.
func newTask(g *train.Graph, o taskOptions, seed uint64) (*task, error) {
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
	t := &task{seed: seed}
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
