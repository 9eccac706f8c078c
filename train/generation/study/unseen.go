package study

import (
	"context"
	"errors"
	"fmt"

	"giantstream/train"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// unseen hides nodes with all their edges from everything, vectorizer and projection included, trains
// the encoders on the graph that is left, embeds all texts, and measures the unseen nodes: what a
// new product meets before the next generation.
func (t *texts) unseen(ctx context.Context, o Options, encoders []string) (_ []*fit.UnseenFigures, err error) {
	graph, r := t.corpus.Graph, o.Resources
	hidden, seen, links := eval.SplitNodes(graph, o.HoldoutNodes, o.Settings.EvalSeed)
	rest := &texts{corpus: t.corpus, Inputs: fit.Inputs{Texts: t.Texts.Subset(seen)}}
	defer func() { t.warn(errors.Join(rest.Features.Close(), rest.Projected.Close()), r.Log) }()
	if err := rest.fit(ctx, o.Settings, r); err != nil {
		return nil, err
	}
	s := &split{Options: o, Inputs: rest.Inputs}
	s.Graph = eval.Subgraph(graph, seen)
	if s.Graph.Neighbours.NNZ() == 0 {
		r.Log.Warn("no link is left without the unseen nodes; their figures are left out")
		return make([]*fit.UnseenFigures, len(encoders)), nil
	}
	if _, err := s.cluster("PIFA and label tree"); err != nil {
		return nil, err
	}
	exam := fit.Exam{Known: eval.Only(graph, seen), Hidden: links, Classes: t.corpus.Stats.Classes}
	out := make([]*fit.UnseenFigures, len(encoders))
	for i, kind := range encoders {
		vectors, dim, err := s.embedSeen(ctx, kind, t.Texts)
		if err != nil {
			return nil, fmt.Errorf("encoder %s: %w", kind, err)
		}
		out[i], err = exam.EvaluateUnseen(hidden, seen, vectors, dim, o.Settings, r.Workers, r.Log)
		if err != nil {
			return nil, fmt.Errorf("encoder %s: %w", kind, err)
		}
	}
	return out, nil
}

// embedSeen trains an encoder on the split and embeds the texts of all nodes, seen or not.
func (s *split) embedSeen(ctx context.Context, kind string, all *fit.Texts) (vectors []float32, dim int, err error) {
	r := s.Resources
	if kind != linear.LSAKind {
		trained, err := fit.Train(ctx, kind, s.training())
		if err != nil {
			return nil, 0, err
		}
		defer train.Close(trained.Encoder) //nolint:errcheck // it has done its work
		vectors, err = fit.Embed(ctx, trained.Encoder, all, r.Progress)
		return vectors, trained.Encoder.Dim(), err
	}
	features, err := fit.Vectorize(ctx, s.Vectorizer, all, r)
	if err != nil {
		return nil, 0, err
	}
	projected, err := fit.Project(ctx, s.Projection, features, r)
	if err == nil {
		vectors, err = fit.EmbedText(projected, s.Dim, r.Workers)
	}
	return vectors, s.Dim, errors.Join(err, features.Close(), projected.Close())
}
