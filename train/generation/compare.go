package generation

import (
	"context"
	"fmt"
	"math"

	"giantstream/train/lsa"
)

// Comparison is how one encoder does over several splits of a graph.
type Comparison struct {
	Encoder string `json:"encoder"`
	// Runs has one evaluation per split.
	Runs []Evaluation `json:"runs"`
}

// Spread is a mean and the standard deviation between splits.
type Spread struct{ Mean, StdDev float64 }

// Over returns the spread of a figure over the runs that have it.
func (c Comparison) Over(figure func(Evaluation) (float64, bool)) Spread {
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

// Compare trains the encoders on the source's graph with Settings.Holdout of
// the edges hidden, once per seed, and measures them on what was hidden. The
// encoder "lsa" is the text-only baseline. Nothing is stored. Texts are
// vectorized once for all splits: the vectorizer sees no edges.
func (b *Builder) Compare(ctx context.Context, source Source, encoders []string, seeds []uint64) ([]Comparison, error) {
	f, err := b.unstored(ctx, source)
	if err != nil {
		return nil, err
	}
	defer f.close()
	out := make([]Comparison, len(encoders))
	for i, kind := range encoders {
		out[i].Encoder = kind
	}
	for _, seed := range seeds {
		f.doc.Settings.EvalSeed = seed
		if err := f.split(); err != nil {
			return nil, err
		}
		if err := f.cluster(); err != nil {
			return nil, err
		}
		for i, kind := range encoders {
			e, err := f.compare(kind)
			if err != nil {
				return nil, fmt.Errorf("encoder %s, split %d: %w", kind, seed, err)
			}
			out[i].Runs = append(out[i].Runs, e)
		}
	}
	f.clock.end()
	return out, nil
}

// unstored begins a build of which nothing is kept and takes it up to the
// projected texts, which do not depend on the edges. The caller closes it.
func (b *Builder) unstored(ctx context.Context, source Source) (_ *building, err error) {
	if err := b.Settings.check(); err != nil {
		return nil, err
	}
	clock := newStageClock(b.Progress, b.Now)
	clock.Stage("read the cut", 0)
	corpus, err := loadCorpus(ctx, source, b.Settings.MaxDegree, b.share(textShare), clock)
	if err != nil {
		return nil, err
	}
	unstored := *b
	unstored.Store = nil
	f := &building{Builder: &unstored, ctx: ctx, doc: &Doc{Settings: b.Settings, Graph: corpus.stats}, corpus: corpus, clock: clock}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if corpus.stats.Links == 0 {
		return nil, fmt.Errorf("%w: %d nodes, none of which has a neighbour", ErrTooFew, corpus.stats.Nodes)
	}
	if err := f.vectorize(); err != nil {
		return nil, err
	}
	return f, f.project()
}

// compare trains and measures one encoder on the split at hand.
func (f *building) compare(kind string) (Evaluation, error) {
	if kind == lsa.Kind {
		return f.measureText()
	}
	var err error
	if f.encoder, _, err = f.train(kind, &checkpoints{f: f}); err != nil {
		return Evaluation{}, err
	}
	if err := f.encode(); err != nil {
		return Evaluation{}, err
	}
	return f.measure(kind, f.vectors, f.encoder.Dim())
}

// String gives "0.812 ± 0.004", or "-" where no run has the figure.
func (s Spread) String() string {
	if s == (Spread{}) {
		return "-"
	}
	return fmt.Sprintf("%.3f ± %.3f", s.Mean, s.StdDev)
}
