package generation

import (
	"context"
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/internal/rng"
	"giantstream/train/xmc"
	"giantstream/train/xrlinear"
)

// MatcherReport is how well linear classifiers on TF-IDF find the
// neighbourhoods of nodes that they have not seen.
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

// Matcher hides the links of a share of the instances, fits label tree and
// XR-Linear to the others and asks for the neighbourhoods of the hidden ones.
// matched > 0 adds matcher-aware negatives. Nothing is stored. It holds the
// features of all texts in memory.
func (b *Builder) Matcher(ctx context.Context, source Source, hidden float64, matched int, seed uint64) (*MatcherReport, error) {
	f, err := b.unstored(ctx, source)
	if err != nil {
		return nil, err
	}
	defer f.close()
	learn, ask := f.hideInstances(hidden, seed)
	if len(learn) == 0 || len(ask) == 0 {
		return nil, fmt.Errorf("%w: %d instances to learn from and %d to ask for", ErrTooFew, len(learn), len(ask))
	}
	if err := f.cluster(); err != nil {
		return nil, err
	}
	x, y, err := f.rowsOf(learn, f.known)
	if err != nil {
		return nil, err
	}
	started := b.Now()
	m, err := xrlinear.Train(ctx, x, y, f.tree, xrlinear.Options{Matched: matched, Seed: seed, Workers: b.Workers}, f.clock)
	if err != nil {
		return nil, err
	}
	r := &MatcherReport{Instances: len(learn), Hidden: len(ask), Features: f.vectorizer.Dim(), Weights: m.Weights(),
		Seconds: b.Now().Sub(started).Seconds()}
	if x, y, err = f.rowsOf(ask, f.corpus.graph); err != nil {
		return nil, err
	}
	f.clock.Stage("ask for hidden neighbourhoods", 0)
	r.Levels, err = m.Evaluate(x, y, f.tree, b.Workers)
	f.clock.end()
	return r, err
}

// hideInstances draws the instances to hide; the known graph is without
// their rows.
func (f *building) hideInstances(share float64, seed uint64) (learn, ask []int32) {
	g := f.corpus.graph
	f.known = &train.Graph{IDs: g.IDs, Texts: g.Texts, Classes: g.Classes, Neighbours: &sparse.Matrix{Cols: g.Len(), Start: []int64{0}}}
	for i := range g.Len() {
		row := g.Neighbours.Row(i)
		if k := len(row.Index); k > 0 && k <= f.doc.Settings.MaxDegree {
			if r := rng.New(seed, streamMatcher, uint64(i)); r.Float64() < share {
				ask, row = append(ask, int32(i)), sparse.Vector{}
			} else {
				learn = append(learn, int32(i))
			}
		}
		f.known.Neighbours.Append(row)
	}
	return learn, ask
}

// rowsOf returns features and labels of some nodes.
func (f *building) rowsOf(nodes []int32, g *train.Graph) (x, y *sparse.Matrix, err error) {
	x, y = &sparse.Matrix{Cols: f.vectorizer.Dim()}, &sparse.Matrix{Cols: g.Len()}
	for _, i := range nodes {
		x.Append(f.features.Row(int(i)))
		y.Append(g.Neighbours.Row(int(i)))
	}
	return x, y, f.readError()
}
