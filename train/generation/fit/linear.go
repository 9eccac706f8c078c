package fit

import (
	"context"

	"giantstream/train/encoders/linear"
	"giantstream/train/numeric"
)

func trainLinear(ctx context.Context, t *Training) (*Trained, error) {
	e, report, err := t.solve(ctx)
	if err != nil {
		return nil, err
	}
	return &Trained{Encoder: e, Metrics: report}, nil
}

// solve fits the linear encoder, which other encoders start from.
func (t *Training) solve(ctx context.Context) (*linear.Encoder, linear.Report, error) {
	s := t.Settings
	w, report, err := linear.Fit(ctx, linear.Data{
		Text: t.projected, Rank: t.Projection.Dim(), Labels: t.Labels, Dim: t.Dim, Neighbours: t.Graph.Neighbours,
		Keys: numeric.Keys(t.Graph.IDs),
	}, linear.Options{MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: t.Resources.Workers}, t.Resources.Progress)
	if err != nil {
		return nil, report, err
	}
	e, err := linear.New(t.Vectorizer, t.Projection, w, t.Dim)
	return e, report, err
}
