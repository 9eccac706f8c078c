package generation

import (
	"context"
	"errors"
	"fmt"
	"io"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/bert"
	"giantstream/train/encoder"
	"giantstream/train/fit"
	"giantstream/train/linear"
)

const encoderName = "encoder"

// trainEncoder trains the encoder that the settings name, or loads it if it
// is trained already.
func (f *building) trainEncoder() error {
	prefix := f.key(encoderName)
	checkpoints, err := f.checkpoints(checkpointsName)
	if err != nil {
		return err
	}
	trained, config, err := encoder.Load(f.ctx, f.Store, prefix, f.vectorizer, f.projection)
	if errors.Is(err, sink.ErrNotFound) {
		var meta encoder.Meta
		if trained, meta, err = f.train(f.doc.Settings.Encoder, checkpoints); err != nil {
			return err
		}
		if config, err = encoder.Save(f.ctx, f.Store, prefix, trained, meta); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	f.encoder = trained
	f.doc.Encoder = EncoderStats{Kind: config.Kind, Dim: config.Dim, Bytes: config.Size(), Metrics: config.Metrics}
	return f.removeCheckpoints() // not before the encoder is there
}

// train fits one kind of encoder to the known edges.
func (f *building) train(kind string, c *checkpoints) (_ train.Encoder, _ encoder.Meta, err error) {
	defer func() { err = errors.Join(err, f.readError()) }()
	s := f.doc.Settings
	meta := encoder.Meta{Vectorizer: f.vectorizer, Projection: f.projection, Seed: s.Seed}
	inputs := fit.Inputs{Graph: f.known, Vectorizer: f.vectorizer, Features: f.features,
		Projection: f.projection, Projected: func(i int, out []float32) { f.projected.row(i, out) }, Labels: f.labels, LabelDim: f.pifaDim, Tree: f.tree}
	switch kind {
	case linear.Kind:
		e, report, err := fit.Linear(f.ctx, inputs, linear.Options{MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: f.Workers}, f.clock)
		meta.Metrics = report
		return e, meta, err
	case bag.Kind:
		r, err := f.trainBag(inputs, c)
		if err != nil {
			return nil, meta, err
		}
		meta.Metrics, meta.Matcher = r.Report, r.Matcher
		return r.Encoder, meta, nil
	case bert.Kind:
		e, r, matcher, err := f.trainBERT(inputs, c)
		if err != nil {
			return nil, meta, err
		}
		meta.Metrics, meta.Matcher = r, matcher
		return e, meta, f.drawCurve(curveName, r.Report)
	}
	return nil, meta, fmt.Errorf("unknown encoder %q; use bag, linear or bert", kind)
}

func (f *building) trainBag(inputs fit.Inputs, c *checkpoints) (r *fit.BagResult, err error) {
	s := f.doc.Settings
	options := bag.Options{Epochs: s.Epochs, MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: f.Workers}
	err = c.resume(func(state io.Reader) error {
		b := bag.Checkpoints{Due: c.due, Save: func(ctx context.Context, s *bag.State) error { return c.save(ctx, s) }}
		if state != nil {
			var err error
			if b.Resume, err = bag.ReadState(state); err != nil {
				return err
			}
		}
		var err error
		r, err = fit.Bag(f.ctx, inputs, options, b, f.clock)
		return err
	})
	return r, err
}
