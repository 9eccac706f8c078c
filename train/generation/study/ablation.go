package study

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"giantstream/featurize/pifa"
	"giantstream/internal/ambient"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
	"giantstream/train/objectives/linkpred"
	"giantstream/train/objectives/trainer"
)

// Ablation is the paper's table for a graph: what the texts alone give, what
// link prediction adds, and what neighbourhood prediction adds, by what the
// label tree is built on.
type Ablation struct {
	Graph generation.GraphStats `json:"graph"`
	// Encoder is what was trained.
	Encoder string   `json:"encoder"`
	Holdout float64  `json:"holdout_edges"`
	Seeds   []uint64 `json:"seeds"`
	// SharedSeconds went into vectorizer and projection, once for all rows.
	SharedSeconds float64       `json:"shared_seconds"`
	Rows          []AblationRow `json:"rows"`
}

// AblationRow is one way to embeddings.
type AblationRow struct {
	// Row is "text", "link prediction" or "neighbourhoods, " and the
	// label features.
	Row string `json:"row"`
	// Comparison has the encoder's kind and an evaluation per seed.
	Comparison
	// Seconds are those of training and embedding, per seed.
	Seconds []float64 `json:"seconds"`
}

// Time returns the spread of the seconds.
func (r AblationRow) Time() Spread { return spread(r.Seconds) }

// variant is a way to embeddings: make trains what it must on a split and returns the embeddings of
// all nodes.
type variant struct {
	row, encoder string
	make         func(context.Context, *split) (vectors []float32, dim int, err error)
}

// Ablate makes the table for the source's graph, with Settings.Holdout of the edges hidden, once
// per seed: the seed of the split, of the tree and of the training. Rows that train use
// Settings.Encoder; plain BERT has a row where the settings name a model.
func Ablate(ctx context.Context, o Options, source generation.Source, seeds []uint64) (*Ablation, error) {
	now, progress := o.Resources.Now, ambient.OrDiscard(o.Resources.Progress)
	started := now()
	t, err := featurize(ctx, &o, source)
	if err != nil {
		return nil, err
	}
	defer t.close(o.Resources.Log)
	out := &Ablation{Graph: t.corpus.Stats, Encoder: o.Settings.Encoder, Holdout: o.Settings.Holdout, Seeds: seeds,
		SharedSeconds: now().Sub(started).Seconds()}
	variants := variants(o.Settings)
	for _, v := range variants {
		out.Rows = append(out.Rows, AblationRow{Row: v.row, Comparison: Comparison{Encoder: v.encoder}})
	}
	for k, seed := range seeds {
		o.Settings.EvalSeed, o.Settings.Seed, o.Settings.TreeSeed = seed, seed, seed
		s := t.hide(o)
		out.Graph.Hidden = len(s.exam.Hidden)
		for i, v := range variants {
			s.Resources.Progress = &labelled{progress, fmt.Sprintf("%d of %d, %s", k+1, len(seeds), v.row)}
			took, e, err := s.measure(ctx, v)
			if err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", v.row, seed, err)
			}
			report(o.Resources.Log, v, seed, took, e)
			out.Rows[i].Runs, out.Rows[i].Seconds = append(out.Rows[i].Runs, e), append(out.Rows[i].Seconds,
				took.Seconds())
		}
	}
	return out, nil
}

// variants are the rows, in the order of the paper's tables.
func variants(s fit.Settings) []variant {
	rows := []variant{{"text", linear.LSAKind, plainText}}
	for _, k := range fit.Kinds() {
		if k.NeedsModel && s.BERT != nil {
			rows = append(rows, variant{"text", k.Name, plainModel(k.Name)})
		}
	}
	baseline := baselineKind(s.Encoder)
	rows = append(rows, variant{"link prediction", baseline, func(ctx context.Context, s *split) ([]float32,
		int, error) {
		return s.linkPrediction(ctx, baseline)
	}})
	for _, features := range []pifa.Kind{pifa.RandomFeatures, pifa.Text, pifa.PIFAIdentity, pifa.PIFA} {
		rows = append(rows, variant{"neighbourhoods, " + string(features), s.Encoder, func(ctx context.Context,
			s *split) ([]float32, int, error) {
			return s.neighbourhoods(ctx, features)
		}})
	}
	return rows
}

// measure makes a row's embeddings and evaluates them.
func (s *split) measure(ctx context.Context, v variant) (took time.Duration, e fit.Evaluation, err error) {
	if err := ctx.Err(); err != nil {
		return 0, e, err
	}
	started := s.Resources.Now()
	vectors, dim, err := v.make(ctx, s)
	if err != nil {
		return 0, e, err
	}
	took = s.Resources.Now().Sub(started)
	s.Resources.Progress.Stage("evaluate", 0)
	e, err = s.evaluate(v.encoder, vectors, dim)
	return took, e, err
}

// report logs the figures of a row and a seed, so that a long run shows them as they come.
func report(log *slog.Logger, v variant, seed uint64, took time.Duration, e fit.Evaluation) {
	attrs := []any{"row", v.row, "encoder", v.encoder, "seed", seed, "took", took.Round(time.Millisecond)}
	if e.Links != nil {
		attrs = append(attrs, "link_auc", e.Links.AUC, "mrr", e.Links.MRR)
	}
	for _, p := range e.Probes {
		attrs = append(attrs, fmt.Sprintf("class_at_%g", p.Rate), p.Accuracy)
	}
	log.Info("row measured", attrs...)
}

// plainText is the projection of the texts.
func plainText(_ context.Context, s *split) ([]float32, int, error) {
	s.Resources.Progress.Stage("project", 0)
	vectors, err := fit.EmbedText(s.Projected, s.Dim, s.Resources.Workers)
	return vectors, s.Dim, err
}

// plainModel is the model as it came: the same embeddings for all seeds.
func plainModel(kind string) func(context.Context, *split) ([]float32, int, error) {
	var vectors []float32
	return func(ctx context.Context, s *split) ([]float32, int, error) {
		e, err := fit.Pretrained(kind, s.training())
		if err != nil {
			return nil, 0, err
		}
		defer train.Close(e) //nolint:errcheck // it has done its work
		if vectors == nil {
			if vectors, err = fit.Embed(ctx, e, s.Texts, s.Resources.Progress); err != nil {
				return nil, 0, err
			}
		}
		return vectors, e.Dim(), nil
	}
}

// neighbourhoods is GIANT. All that training sees of the labels' features are the row's: the tree,
// and the start of encoders that start from labels' features.
func (s *split) neighbourhoods(ctx context.Context, features pifa.Kind) ([]float32, int, error) {
	row := *s
	row.Settings.LabelFeatures = string(features)
	clustered, err := row.cluster("label tree")
	if err != nil {
		return nil, 0, err
	}
	row.Labels = clustered
	return row.trainAndEmbed(ctx, row.Settings.Encoder)
}

// baselineKind is the encoder that link prediction trains beside the given one: the same, or a bag
// where it has no network.
func baselineKind(encoder string) string {
	for _, k := range fit.Kinds() {
		if k.Name == encoder && k.HasNetwork() {
			return encoder
		}
	}
	return bag.Kind
}

// linkPrediction fine-tunes an encoder by a triplet loss.
func (s *split) linkPrediction(ctx context.Context, kind string) ([]float32, int, error) {
	t := s.training()
	anchors, _, pairs := t.Instances()
	net, err := fit.NewNetwork(ctx, kind, t)
	if err != nil {
		return nil, 0, err
	}
	defer train.Close(net.Encoder) //nolint:errcheck // it has done its work
	defer net.Close()
	options := net.LinkPrediction
	options.Seed = s.Settings.Seed
	if s.Settings.Epochs > 0 {
		options.Epochs = s.Settings.Epochs
	}
	var hooks trainer.Hooks
	if pairs != nil {
		hooks.Validate = pairs.Validate(net.Dim())
	}
	graph := linkpred.Graph{Neighbours: s.Graph.Neighbours, Keys: numeric.Keys(s.Graph.IDs), Anchors: anchors}
	if _, err := linkpred.Train(ctx, net, graph, options, hooks, s.Resources.Progress); err != nil {
		return nil, 0, err
	}
	vectors, err := fit.Embed(ctx, net.Encoder, s.Texts, s.Resources.Progress)
	return vectors, net.Encoder.Dim(), err
}

// labelled names the row before the name of every stage.
type labelled struct {
	ambient.Progress
	label string
}

func (l *labelled) Stage(name string, total int64) { l.Progress.Stage(l.label+": "+name, total) }
