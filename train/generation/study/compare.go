package study

import (
	"context"
	"fmt"
	"math"

	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

// Comparison is how one encoder does over several splits of a graph.
type Comparison struct {
	Encoder string `json:"encoder"`
	// Runs has one evaluation per split.
	Runs []fit.Evaluation `json:"runs"`
}

// Spread is a mean and the standard deviation between splits.
type Spread struct{ Mean, StdDev float64 }

// SpreadOf returns the spread of a figure over the runs that have it.
func (c Comparison) SpreadOf(figure func(fit.Evaluation) (float64, bool)) Spread {
	var values []float64
	for _, r := range c.Runs {
		if v, ok := figure(r); ok {
			values = append(values, v)
		}
	}
	return spread(values)
}

// spread returns the mean and standard deviation of the values.
func spread(values []float64) Spread {
	var s Spread
	for _, v := range values {
		s.Mean += v / float64(len(values))
	}
	for _, v := range values {
		s.StdDev += (v - s.Mean) * (v - s.Mean)
	}
	if len(values) > 1 {
		s.StdDev = math.Sqrt(s.StdDev / float64(len(values)-1))
	}
	return s
}

// String gives "0.812 ± 0.004", or "-" where no run has the figure.
func (s Spread) String() string {
	if s == (Spread{}) {
		return "-"
	}
	return fmt.Sprintf("%.3f ± %.3f", s.Mean, s.StdDev)
}

// Compare trains the encoders on the source's graph with Settings.Holdout of the edges hidden, once
// per seed, and measures them on what was hidden. The encoder "lsa" is the text-only baseline.
// Texts are vectorized once for all splits: the vectorizer sees no edges. With
// Options.HoldoutNodes, the encoders are trained once more per seed, without the hidden nodes. The log has the figures
// as they come.
func Compare(ctx context.Context, o Options, source generation.Source, encoders []string,
	seeds []uint64) ([]Comparison, error) {
	for _, kind := range encoders {
		s := o.Settings
		s.Encoder = kind
		if err := s.CheckEncoder(); err != nil {
			return nil, err
		}
	}
	t, err := featurize(ctx, &o, source)
	if err != nil {
		return nil, err
	}
	defer t.close(o.Resources.Log)
	out := make([]Comparison, len(encoders))
	for i, kind := range encoders {
		out[i].Encoder = kind
	}
	for _, seed := range seeds {
		o.Settings.EvalSeed = seed
		s := t.hide(o)
		if _, err := s.cluster("PIFA and label tree"); err != nil {
			return nil, err
		}
		for i, kind := range encoders {
			began := o.Resources.Now()
			e, err := s.compare(ctx, kind)
			if err != nil {
				return nil, fmt.Errorf("encoder %s, split %d: %w", kind, seed, err)
			}
			report(o.Resources.Log, variant{row: kind, encoder: kind}, seed, o.Resources.Now().Sub(began), e)
			out[i].Runs = append(out[i].Runs, e)
		}
		if o.HoldoutNodes == 0 {
			continue
		}
		figures, err := t.unseen(ctx, o, encoders)
		if err != nil {
			return nil, fmt.Errorf("unseen nodes, split %d: %w", seed, err)
		}
		for i, f := range figures {
			out[i].Runs[len(out[i].Runs)-1].Unseen = f
			if f != nil && f.Links != nil {
				o.Resources.Log.Info("unseen nodes measured", "encoder", encoders[i], "seed", seed,
					"link_auc", f.Links.AUC, "mrr", f.Links.MRR)
			}
		}
	}
	return out, nil
}

// compare trains and measures one encoder.
func (s *split) compare(ctx context.Context, kind string) (e fit.Evaluation, err error) {
	vectors, dim, err := s.embed(ctx, kind)
	if err != nil {
		return e, err
	}
	return s.evaluate(kind, vectors, dim)
}

// embed returns the embeddings of all nodes by an encoder, which is trained for it, or by the text
// alone.
func (s *split) embed(ctx context.Context, kind string) (vectors []float32, dim int, err error) {
	if kind == linear.LSAKind {
		vectors, err = fit.EmbedText(s.Projected, s.Dim, s.Resources.Workers)
		return vectors, s.Dim, err
	}
	return s.trainAndEmbed(ctx, kind)
}
