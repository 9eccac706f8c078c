package study

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"giantstream/featurize/labeltree"
	"giantstream/internal/ambient"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

// Options are what a study works with.
type Options struct {
	Settings fit.Settings
	// HoldoutNodes is the share of nodes that Compare hides with all their edges, besides and apart
	// from the edges that it hides; 0 for none.
	HoldoutNodes float64
	// Resources bound the stages; its Progress may be nil.
	Resources fit.Resources
}

// texts is a graph with what is fitted on its texts alone, and so is the same for every split.
type texts struct {
	fit.Inputs
	corpus *generation.Corpus
}

// close gives back what the texts hold outside of memory.
func (t *texts) close(log *slog.Logger) {
	t.warn(errors.Join(t.corpus.Close(), t.Features.Close(), t.Projected.Close()), log)
}

// warn logs that temporary files could not be given back.
func (t *texts) warn(err error, log *slog.Logger) {
	if err != nil {
		log.Warn("a temporary file is left behind", "error", err)
	}
}

// featurize reads the source and takes its texts to their projections. The caller closes the
// result.
func featurize(ctx context.Context, o *Options, source generation.Source) (_ *texts, err error) {
	o.Resources.Progress = ambient.OrDiscard(o.Resources.Progress)
	s, r := o.Settings, o.Resources
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if o.HoldoutNodes < 0 || o.HoldoutNodes > 0.5 {
		return nil, fmt.Errorf("holdout_nodes %g must lie in [0, 0.5]", o.HoldoutNodes)
	}
	corpus, err := generation.ReadCut(ctx, source, s.MaxDegree, r)
	if err != nil {
		return nil, err
	}
	t := &texts{corpus: corpus, Inputs: fit.Inputs{Texts: corpus.Texts}}
	defer func() {
		if err != nil {
			t.close(r.Log)
		}
	}()
	if corpus.Stats.Links == 0 {
		return nil, fmt.Errorf("no link to hide: none of %d nodes states a link to another", corpus.Stats.Nodes)
	}
	return t, t.fit(ctx, s, r)
}

// fit fits vectorizer and projection to the texts and applies them.
func (t *texts) fit(ctx context.Context, s fit.Settings, r fit.Resources) (err error) {
	r.Progress.Stage("fit vectorizer (TF-IDF)", int64(t.Texts.Len()))
	if t.Vectorizer, err = fit.Vectorizer(ctx, t.Texts, s, r); err != nil {
		return err
	}
	if t.Features, err = fit.Vectorize(ctx, t.Vectorizer, t.Texts, r); err != nil {
		return err
	}
	r.Progress.Stage("fit projection (LSA)", 0)
	if t.Projection, err = fit.Projection(t.Features, s, r); err != nil {
		return err
	}
	t.Dim = min(s.EmbeddingDim, t.Projection.Dim())
	t.Projected, err = fit.Project(ctx, t.Projection, t.Features, r)
	return err
}

// split is a graph with some of its edges hidden.
type split struct {
	Options
	fit.Inputs
	exam fit.Exam
}

// hide hides edges as the settings say. The result has neither labels' features nor a tree.
func (t *texts) hide(o Options) *split {
	known, hidden := fit.HideEdges(t.corpus.Graph, o.Settings)
	s := &split{Options: o, Inputs: t.Inputs, exam: fit.Exam{Known: known, Hidden: hidden,
		Classes: t.corpus.Stats.Classes}}
	s.Graph = known
	return s
}

// cluster makes the labels' features and builds the tree on those that the settings ask for, which
// it returns.
func (s *split) cluster(stage string) (clustered []float32, err error) {
	workers := s.Resources.Workers
	s.Resources.Progress.Stage(stage, 0)
	if s.Labels, clustered, err = fit.LabelFeatures(s.Graph, s.Projected, s.Dim, s.Settings, workers); err != nil {
		return nil, err
	}
	features, err := labeltree.Dense(clustered, s.Dim)
	if err != nil {
		return nil, err
	}
	s.Tree, err = fit.BuildTree(features, s.Settings, workers)
	return clustered, err
}

func (s *split) training() fit.Training {
	return fit.Training{Inputs: s.Inputs, Settings: s.Settings, Resources: s.Resources, Journal: fit.NoJournal{}}
}

// trainAndEmbed trains an encoder and embeds all nodes.
func (s *split) trainAndEmbed(ctx context.Context, kind string) (vectors []float32, dim int, err error) {
	trained, err := fit.Train(ctx, kind, s.training())
	if err != nil {
		return nil, 0, err
	}
	defer train.Close(trained.Encoder) //nolint:errcheck // it has done its work
	vectors, err = fit.Embed(ctx, trained.Encoder, s.Texts, s.Resources.Progress)
	return vectors, trained.Encoder.Dim(), err
}

func (s *split) evaluate(kind string, vectors []float32, dim int) (fit.Evaluation, error) {
	return s.exam.Evaluate(kind, vectors, dim, s.Settings, s.Resources.Workers, s.Resources.Log)
}
