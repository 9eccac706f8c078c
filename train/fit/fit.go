package fit

import (
	"context"
	"fmt"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/linear"
	"giantstream/train/xmc"
)

// LeafSize is the size of the tree's leaves (labeltree.Options.MaxLeafSize)
// that measures best for the bag: against 48 it gives the product graph 0.006
// more AUC and a tenth more MRR, for a quarter more training time.
const LeafSize = 16

// Inputs are a generation's artifacts, all made from Graph and none changed
// by training.
type Inputs struct {
	Graph      *train.Graph
	Vectorizer *tfidf.Model
	// Features is Ψ of every node's text (Vectorizer.TransformAll).
	Features   bag.Features
	Projection *projection.Projection
	// Projected writes the projection of node i's text, Projection.Dim()
	// numbers, to out. It must be safe for concurrent use.
	Projected func(i int, out []float32)
	// Labels holds every label's PIFA sketch, normalised, n × LabelDim:
	// pifa.FromGraph over the first LabelDim numbers of each projection. LabelDim becomes the dimension of the embeddings.
	Labels   []float32
	LabelDim int
	// Tree clusters the labels; needed by Bag only.
	Tree *labeltree.Tree
}

// Linear fits the linear encoder.
func Linear(ctx context.Context, in Inputs, o linear.Options, p train.Progress) (*linear.Encoder, linear.Report, error) {
	w, report, err := linear.Fit(ctx, linear.Data{
		Text: in.Projected, Rank: in.Projection.Dim(), Labels: in.Labels, Dim: in.LabelDim, Neighbours: in.Graph.Neighbours,
	}, o, p)
	if err != nil {
		return nil, report, err
	}
	e, err := linear.New(in.Vectorizer, in.Projection, w, in.LabelDim)
	return e, report, err
}

// BagResult is a trained bag, with what it started from.
type BagResult struct {
	Encoder *bag.Encoder
	Matcher *xmc.Matcher
	Report  bag.Report
	// Start is the linear encoder that training started from, nil for
	// bag.InitRandom.
	Start       *linear.Encoder
	StartReport linear.Report
}

// Bag trains the bag encoder, with bag.InitLinear from a linear encoder
// fitted here.
func Bag(ctx context.Context, in Inputs, o bag.Options, c bag.Checkpoints, p train.Progress) (*BagResult, error) {
	d := bag.Data{
		Features: in.Features, Neighbours: in.Graph.Neighbours, Tree: in.Tree,
		Labels: in.Labels, Dim: in.LabelDim, Projection: in.Projection,
	}
	r := &BagResult{}
	if o.Init == bag.InitLinear {
		var err error
		lo := linear.Options{Seed: o.Seed, MaxDegree: o.MaxDegree, Workers: o.Workers}
		if r.Start, r.StartReport, err = Linear(ctx, in, lo, p); err != nil {
			return nil, fmt.Errorf("start of the bag: %w", err)
		}
		d.Weights = r.Start.Weights()
	}
	trained, err := bag.Train(ctx, d, o, c, p)
	if err != nil {
		return nil, err
	}
	r.Matcher, r.Report = trained.Matcher, trained.Report
	r.Encoder, err = bag.NewEncoder(in.Vectorizer, trained.Model)
	return r, err
}
