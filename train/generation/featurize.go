package generation

import (
	"context"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/eval"
)

// Names of the artifacts below generations/<g>/.
const (
	vectorizerName = "vectorizer"
	projectionName = "projection"
	treeName       = "tree"
	labelsName     = "labels.parquet"
)

// building is a build in progress: what the stages hand on to one another.
type building struct {
	*Builder
	ctx    context.Context
	doc    *Doc
	corpus *corpus
	clock  *stageClock

	known  *train.Graph // without the held-out edges
	hidden []eval.Edge

	vectorizer *tfidf.Model
	features   *sparse.Matrix // Ψ of every node's text
	projection *projection.Projection
	projected  []float32 // n × projection.Dim()
	pifaDim    int
	labels     []float32 // n × pifaDim: the labels' features, of length 1
	tree       *labeltree.Tree

	encoder train.Encoder
	vectors []float32 // n × encoder.Dim()
}

func (f *building) key(name string) string { return Prefix(f.doc.Generation) + name }

// split hides the edges that the evaluation will ask for.
func (f *building) split() error {
	f.known = f.corpus.graph
	if s := f.doc.Settings; s.Holdout > 0 {
		f.known, f.hidden = eval.Split(f.corpus.graph, s.Holdout, s.EvalSeed)
	}
	f.doc.Graph.Hidden = len(f.hidden)
	return nil
}

// vectorize fits Ψ to all texts and applies it.
func (f *building) vectorize() (err error) {
	texts := f.corpus.graph.Texts
	f.clock.Stage("fit vectorizer (TF-IDF)", int64(len(texts)))
	f.vectorizer, err = artifact(f.ctx, f.Store, f.key(vectorizerName), tfidf.Read, func() (*tfidf.Model, error) {
		options := tfidf.DefaultOptions()
		if f.doc.Settings.Profile == "pecos" {
			options = tfidf.PECOSOptions()
		}
		fitter, err := tfidf.NewFitter(options)
		if err != nil {
			return nil, err
		}
		fitter.AddAll(texts, f.Workers)
		return fitter.Fit()
	}, (*tfidf.Model).Write)
	if err != nil {
		return err
	}
	f.clock.Stage("vectorize texts", int64(len(texts)))
	f.features = f.vectorizer.TransformAll(texts, f.Workers)
	f.clock.Add(int64(len(texts)))
	return nil
}

// project fits the projection to the features and applies it.
func (f *building) project() (err error) {
	f.clock.Stage("fit projection (LSA)", 0)
	s := f.doc.Settings
	f.projection, err = artifact(f.ctx, f.Store, f.key(projectionName), projection.Read, func() (*projection.Projection, error) {
		return projection.Fit(f.features, s.ProjectionDim, projection.Options{Seed: s.Seed, Workers: f.Workers})
	}, (*projection.Projection).Write)
	if err != nil {
		return err
	}
	f.projected = f.projection.ApplyAll(f.features, f.Workers)
	f.pifaDim = min(s.PIFADim, f.projection.Dim())
	return nil
}

// cluster makes the label features and builds the tree over them.
func (f *building) cluster() error {
	f.clock.Stage("PIFA and label tree", 0)
	s := f.doc.Settings
	weighting := pifa.Sum
	if s.Weighting == "inverse_sqrt_degree" {
		weighting = pifa.InverseSqrtDegree
	}
	n := f.known.Len()
	source := pifa.Source{Projected: truncate(f.projected, f.projection.Dim(), f.pifaDim), Dim: f.pifaDim,
		Labels: f.known.Neighbours, Weighting: weighting, Seed: s.TreeSeed, Workers: f.Workers}
	var err error
	if f.labels, err = pifa.LabelFeatures(pifa.PIFA, source); err != nil {
		return err
	}
	clustered := f.labels // what the tree is built on: PIFA, or an ablation of it
	if kind := pifa.Kind(s.LabelFeatures); kind != pifa.PIFA {
		if clustered, err = pifa.LabelFeatures(kind, source); err != nil {
			return err
		}
	}
	points, err := labeltree.Dense(clustered, f.pifaDim)
	if err != nil {
		return err
	}
	f.tree, err = artifact(f.ctx, f.Store, f.key(treeName), labeltree.Read, func() (*labeltree.Tree, error) {
		return labeltree.Build(points, labeltree.Options{MaxLeafSize: s.LeafSize, Branching: s.Branching,
			Seed: s.TreeSeed, Workers: f.Workers})
	}, (*labeltree.Tree).Write)
	if err != nil {
		return err
	}
	stats := TreeStats{Labels: n, MeanCosine: f.tree.MeanCosine(f.tree.Levels()-1, points, f.Workers)}
	for level := range f.tree.Levels() {
		stats.Levels = append(stats.Levels, f.tree.Clusters(level))
	}
	f.doc.Tree = stats
	if f.Store == nil {
		return nil
	}
	return writeLabels(f.ctx, f.Store, f.key(labelsName), f.known.IDs, f.tree)
}

// truncate returns the first dim columns of n × rank values.
func truncate(values []float32, rank, dim int) []float32 {
	if rank == dim {
		return values
	}
	n := len(values) / rank
	out := make([]float32, n*dim)
	for i := range n {
		copy(out[i*dim:(i+1)*dim], values[i*rank:i*rank+dim])
	}
	return out
}

// loadArtifacts reads what serving needs of a generation's artifacts.
func loadArtifacts(ctx context.Context, store sink.Store, g int64) (v *tfidf.Model, p *projection.Projection, t *labeltree.Tree, err error) {
	if v, err = load(ctx, store, Prefix(g)+vectorizerName, tfidf.Read); err != nil {
		return nil, nil, nil, err
	}
	if p, err = load(ctx, store, Prefix(g)+projectionName, projection.Read); err != nil {
		return nil, nil, nil, err
	}
	t, err = load(ctx, store, Prefix(g)+treeName, labeltree.Read)
	return v, p, t, err
}
