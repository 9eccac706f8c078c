package generation

import (
	"cmp"
	"context"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/eval"
	"giantstream/train/fit"
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
	features   *features
	projection *projection.Projection
	projected  *projected
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

// vectorize fits Ψ to all texts and applies it: two passes over them.
func (f *building) vectorize() (err error) {
	texts := f.corpus.texts
	f.clock.Stage("fit vectorizer (TF-IDF)", int64(texts.len()))
	f.vectorizer, err = artifact(f.ctx, f.Store, f.key(vectorizerName), tfidf.Read, func() (*tfidf.Model, error) {
		options := tfidf.DefaultOptions()
		if f.doc.Settings.Profile == "pecos" {
			options = tfidf.PECOSOptions()
		}
		options.MemoryBudget = countBudget
		fitter, err := tfidf.NewFitter(options)
		if err != nil {
			return nil, err
		}
		if err := texts.blocks(f.ctx, f.clock, func(_ int, texts []string) error {
			fitter.AddAll(texts, f.Workers)
			return nil
		}); err != nil {
			return nil, err
		}
		return fitter.Fit()
	}, (*tfidf.Model).Write)
	if err != nil {
		return err
	}
	f.clock.Stage("vectorize texts", int64(texts.len()))
	f.features, err = vectorize(f.ctx, f.vectorizer, texts, f.share(featureShare), f.Workers, f.clock)
	ngrams := tfidf.NGrams{Total: f.features.ngrams.Total(), Unknown: f.features.ngrams.Unknown()}
	f.doc.Vectorizer = VectorizerStats{Features: f.vectorizer.Dim(), UnknownShare: ngrams.Share()}
	return err
}

// project fits the projection to a sample of the features and applies it.
func (f *building) project() (err error) {
	f.clock.Stage("fit projection (LSA)", 0)
	s := f.doc.Settings
	f.projection, err = artifact(f.ctx, f.Store, f.key(projectionName), projection.Read, func() (*projection.Projection, error) {
		sample, err := f.features.sample(projectionSample, s.Seed)
		if err != nil {
			return nil, err
		}
		return projection.Fit(sample, s.ProjectionDim, projection.Options{Sample: projectionSample, Seed: s.Seed, Workers: f.Workers})
	}, (*projection.Projection).Write)
	if err != nil {
		return err
	}
	f.clock.Stage("project texts", int64(f.features.spool.len()))
	f.projected, err = project(f.ctx, f.projection, f.features, f.share(projectedShare), f.Workers, f.clock)
	f.pifaDim = min(s.PIFADim, f.projection.Dim())
	return err
}

// cluster makes the label features and builds the tree over them.
func (f *building) cluster() error {
	f.clock.Stage("PIFA and label tree", 0)
	features, err := f.labelFeatures()
	if err != nil {
		return err
	}
	return f.plant(features)
}

// labelFeatures makes f.labels and returns what the tree is to be built on:
// them, or an ablation of them.
func (f *building) labelFeatures() ([]float32, error) {
	s := f.doc.Settings
	weighting := pifa.Sum
	if s.Weighting == "inverse_sqrt_degree" {
		weighting = pifa.InverseSqrtDegree
	}
	n := f.known.Len()
	sketch, err := pifa.FromPass(f.pifaDim, f.known.Neighbours, weighting, f.Workers, func(lo, hi int, out []float32) error {
		return f.projected.rows(lo, hi, f.pifaDim, out, f.Workers)
	})
	if err != nil {
		return nil, err
	}
	f.labels = sketch.Normalize()
	kind := pifa.Kind(s.LabelFeatures)
	if kind == pifa.PIFA {
		return f.labels, nil
	}
	source := pifa.Source{Projected: make([]float32, n*f.pifaDim), Dim: f.pifaDim,
		Labels: f.known.Neighbours, Weighting: weighting, Seed: s.TreeSeed, Workers: f.Workers}
	if err := f.projected.rows(0, n, f.pifaDim, source.Projected, f.Workers); err != nil {
		return nil, err
	}
	return pifa.LabelFeatures(kind, source)
}

// plant builds the label tree over the labels' features, n × pifaDim.
func (f *building) plant(features []float32) error {
	s, n := f.doc.Settings, f.known.Len()
	points, err := labeltree.Dense(features, f.pifaDim)
	if err != nil {
		return err
	}
	f.tree, err = artifact(f.ctx, f.Store, f.key(treeName), labeltree.Read, func() (*labeltree.Tree, error) {
		return labeltree.Build(points, labeltree.Options{MaxLeafSize: cmp.Or(s.LeafSize, fit.LeafSize), Branching: s.Branching,
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
