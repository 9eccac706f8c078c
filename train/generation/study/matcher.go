package study

import (
	"context"
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/numeric"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrlinear"
)

// MatcherReport is how well linear classifiers on TF-IDF find the neighbourhoods of nodes that they
// have not seen.
type MatcherReport struct {
	Instances int `json:"instances"` // trained on
	Hidden    int `json:"hidden"`
	Features  int `json:"features"`
	Weights   int `json:"weights"`
	// Seconds of the training.
	Seconds float64 `json:"seconds"`
	// Levels are those of the label tree, coarse to fine, and then the labels.
	Levels []xmc.LevelMetrics `json:"levels"`
}

const streamMatcher = 'M'

// Matcher hides the links of a share of the instances, fits label tree and XR-Linear to the others
// and asks for the neighbourhoods of the hidden ones. matched > 0 adds matcher-aware negatives. It
// holds the features of all texts in memory.
func Matcher(ctx context.Context, o Options, source generation.Source, hidden float64, matched int,
	seed uint64) (*MatcherReport, error) {
	t, err := featurize(ctx, &o, source)
	if err != nil {
		return nil, err
	}
	r := o.Resources
	defer t.close(r.Log)
	whole := t.corpus.Graph
	known, learn, ask := hideInstances(whole, hidden, o.Settings.MaxDegree, seed)
	if len(learn) == 0 || len(ask) == 0 {
		return nil, fmt.Errorf("%w: %d instances to learn from and %d to ask for", generation.ErrTooFew,
			len(learn), len(ask))
	}
	s := &split{Options: o, Inputs: t.Inputs}
	s.Graph = known
	if _, err := s.cluster("PIFA and label tree"); err != nil {
		return nil, err
	}
	x, y, err := t.rowsOf(learn, known)
	if err != nil {
		return nil, err
	}
	started := r.Now()
	m, err := xrlinear.Train(ctx, x, y, s.Tree, xrlinear.Options{Matched: matched, Seed: seed,
		Workers: r.Workers}, r.Progress)
	if err != nil {
		return nil, err
	}
	report := &MatcherReport{Instances: len(learn), Hidden: len(ask), Features: t.Vectorizer.Dim(),
		Weights: m.Weights(),
		Seconds: r.Now().Sub(started).Seconds()}
	if x, y, err = t.rowsOf(ask, whole); err != nil {
		return nil, err
	}
	r.Progress.Stage("ask for hidden neighbourhoods", 0)
	report.Levels, err = m.Evaluate(x, y, s.Tree, r.Workers)
	return report, err
}

// hideInstances draws the instances to hide, and returns the graph without their rows.
func hideInstances(g *train.Graph, share float64, maxDegree int, seed uint64) (known *train.Graph, learn, ask []int32) {
	known = &train.Graph{IDs: g.IDs, Texts: g.Texts, Classes: g.Classes,
		Neighbours: &sparse.Matrix{Cols: g.Len(), Start: []int64{0}}}
	for i := range g.Len() {
		row := g.Neighbours.Row(i)
		if k := len(row.Index); k > 0 && k <= maxDegree {
			if r := numeric.NewRand(seed, streamMatcher, uint64(i)); r.Float64() < share {
				ask, row = append(ask, int32(i)), sparse.Vector{}
			} else {
				learn = append(learn, int32(i))
			}
		}
		known.Neighbours.Append(row)
	}
	return known, learn, ask
}

// rowsOf returns features and labels of some nodes.
func (t *texts) rowsOf(nodes []int32, g *train.Graph) (x, y *sparse.Matrix, err error) {
	x, y = &sparse.Matrix{Cols: t.Vectorizer.Dim()}, &sparse.Matrix{Cols: g.Len()}
	for _, i := range nodes {
		x.Append(t.Features.Row(int(i)))
		y.Append(g.Neighbours.Row(int(i)))
	}
	return x, y, t.Err()
}
