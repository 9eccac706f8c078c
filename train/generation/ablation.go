package generation

import (
	"context"
	"fmt"
	"time"

	"giantstream/featurize/pifa"
	"giantstream/train"
	"giantstream/train/bert"
	"giantstream/train/linkpred"
	"giantstream/train/lsa"
)

// Ablation is the paper's table for a graph: what the texts alone give, what
// link prediction adds, and what neighbourhood prediction adds, by what the
// label tree is built on.
type Ablation struct {
	Graph GraphStats `json:"graph"`
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

// variant is how a row comes about: make trains what it must and returns the
// embeddings of all nodes.
type variant struct {
	row, encoder string
	make         func() (vectors []float32, dim int, err error)
}

// ablation is one run of Ablate.
type ablation struct {
	*building
	plainBERT []float32 // n × dim, the same for all seeds
}

// Ablate makes the table for the source's graph, with Settings.Holdout of the
// edges hidden, once per seed: the seed of the split, of the tree and of the
// training. Rows that train use Settings.Encoder; plain BERT has a row where
// the settings name a model. Nothing is stored.
func (b *Builder) Ablate(ctx context.Context, source Source, seeds []uint64) (*Ablation, error) {
	started := b.Now()
	f, err := b.unstored(ctx, source)
	if err != nil {
		return nil, err
	}
	defer f.close()
	a := &ablation{building: f}
	out := &Ablation{Graph: f.doc.Graph, Encoder: b.Settings.Encoder, Holdout: b.Settings.Holdout, Seeds: seeds,
		SharedSeconds: b.Now().Sub(started).Seconds()}
	variants := a.variants()
	for _, v := range variants {
		out.Rows = append(out.Rows, AblationRow{Row: v.row, Comparison: Comparison{Encoder: v.encoder}})
	}
	for k, seed := range seeds {
		s := &f.doc.Settings
		s.EvalSeed, s.Seed, s.TreeSeed = seed, seed, seed
		if err := f.split(); err != nil {
			return nil, err
		}
		for i, v := range variants {
			f.clock.next = &labelled{train.OrDiscard(b.Progress), fmt.Sprintf("%d of %d, %s", k+1, len(seeds), v.row)}
			took, e, err := a.measureRow(v)
			if err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", v.row, seed, err)
			}
			f.report(v, seed, took, e)
			out.Rows[i].Runs, out.Rows[i].Seconds = append(out.Rows[i].Runs, e), append(out.Rows[i].Seconds, took.Seconds())
		}
	}
	f.clock.end()
	return out, nil
}

// variants are the rows, in the order of the paper's tables.
func (a *ablation) variants() []variant {
	kind := a.doc.Settings.Encoder
	rows := []variant{{"text", lsa.Kind, a.plainText}}
	if a.doc.Settings.BERT != nil {
		rows = append(rows, variant{"text", bert.Kind, a.plain})
	}
	rival := kind
	if kind != bert.Kind {
		rival = "bag" // what link prediction trains where it is no BERT
	}
	rows = append(rows, variant{"link prediction", rival, a.linkPrediction})
	for _, features := range []pifa.Kind{pifa.RandomFeatures, pifa.Text, pifa.PIFAIdentity, pifa.PIFA} {
		rows = append(rows, variant{"neighbourhoods, " + string(features), kind, func() ([]float32, int, error) {
			return a.neighbourhoods(features)
		}})
	}
	return rows
}

// measureRow makes a row's embeddings on the split at hand and evaluates them.
func (a *ablation) measureRow(v variant) (took time.Duration, e Evaluation, err error) {
	if err := a.ctx.Err(); err != nil {
		return 0, e, err
	}
	started := a.Now()
	vectors, dim, err := v.make()
	if err != nil {
		return 0, e, err
	}
	took = a.Now().Sub(started)
	a.clock.Stage("evaluate", 0)
	e, err = a.measure(v.encoder, vectors, dim)
	return took, e, err
}

// report logs a row's figures, so that a long run shows them as they come.
func (f *building) report(v variant, seed uint64, took time.Duration, e Evaluation) {
	attrs := []any{"row", v.row, "encoder", v.encoder, "seed", seed, "took", took.Round(time.Millisecond)}
	if e.Links != nil {
		attrs = append(attrs, "link_auc", e.Links.AUC, "mrr", e.Links.MRR)
	}
	for _, p := range e.Probes {
		attrs = append(attrs, fmt.Sprintf("class_at_%g", p.Rate), p.Accuracy)
	}
	f.Log.Info("row measured", attrs...)
}

// plainText is the projection of the texts.
func (a *ablation) plainText() ([]float32, int, error) {
	a.clock.Stage("project", 0)
	vectors := make([]float32, a.known.Len()*a.pifaDim)
	err := a.projected.rows(0, a.known.Len(), a.pifaDim, vectors, a.Workers)
	lsa.Normalize(vectors, a.pifaDim)
	return vectors, a.pifaDim, err
}

// plain is the model as it came.
func (a *ablation) plain() ([]float32, int, error) {
	tuner, err := a.tuner()
	if err != nil {
		return nil, 0, err
	}
	if a.plainBERT == nil {
		a.clock.Stage("encode all nodes", int64(a.known.Len()))
		if a.plainBERT, err = encodeAll(a.ctx, tuner.Encoder(), a.corpus.texts, a.clock); err != nil {
			return nil, 0, err
		}
	}
	return a.plainBERT, tuner.Dim(), nil
}

// neighbourhoods is GIANT. All that training sees of the labels' features is
// the row's: the tree, and where an encoder starts from them, its start.
func (a *ablation) neighbourhoods(features pifa.Kind) ([]float32, int, error) {
	a.doc.Settings.LabelFeatures = string(features)
	a.clock.Stage("label tree", 0)
	clustered, err := a.labelFeatures()
	if err != nil {
		return nil, 0, err
	}
	a.labels = clustered
	if err := a.plant(clustered); err != nil {
		return nil, 0, err
	}
	if a.encoder, _, err = a.train(a.doc.Settings.Encoder, &checkpoints{f: a.building}); err != nil {
		return nil, 0, err
	}
	return a.embedded()
}

// linkPrediction fine-tunes the encoder by a triplet loss: a BERT where that is
// the encoder, else a bag that starts from the projection of the texts.
func (a *ablation) linkPrediction() ([]float32, int, error) {
	s := a.doc.Settings
	anchors, pairs := a.holdOut()
	graph := linkpred.Graph{Neighbours: a.known.Neighbours, Anchors: anchors, Text: a.corpus.texts.text}
	net, current, options, err := a.rival()
	if err != nil {
		return nil, 0, err
	}
	a.encoder = current
	options.Seed = s.Seed
	if s.Epochs > 0 {
		options.Epochs = s.Epochs
	}
	var judge linkpred.Judge
	if pairs != nil {
		judge = func(context.Context) (float64, error) { return a.judge(pairs, current.Dim(), current.Encode) }
	}
	if _, err := linkpred.Train(a.ctx, net, graph, options, judge, a.clock); err != nil {
		return nil, 0, err
	}
	return a.embedded()
}

// embedded embeds all nodes with a.encoder.
func (a *ablation) embedded() ([]float32, int, error) {
	err := a.encode()
	return a.vectors, a.encoder.Dim(), err
}

// labelled says at every stage which row it belongs to.
type labelled struct {
	train.Progress
	label string
}

func (l *labelled) Stage(name string, total int64) { l.Progress.Stage(l.label+": "+name, total) }
