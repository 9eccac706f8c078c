package generation

import (
	"context"
	"errors"
	"fmt"
	"io"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/encoder"
	"giantstream/train/fit"
	"giantstream/train/linear"
)

const (
	encoderName = "encoder"
	// checkpointName holds the state of an encoder's training while it runs.
	checkpointName = "encoder/checkpoint"
)

// trainEncoder trains the encoder that the settings name, or loads it if it
// is trained already.
func (f *building) trainEncoder() error {
	prefix := f.key(encoderName)
	trained, config, err := encoder.Load(f.ctx, f.Store, prefix, f.vectorizer, f.projection)
	if errors.Is(err, sink.ErrNotFound) {
		checkpoints, err := f.checkpoints()
		if err != nil {
			return err
		}
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
	f.doc.Encoder = EncoderStats{Kind: config.Kind, Dim: config.Dim, Bytes: config.Model.Bytes, Metrics: config.Metrics}
	return f.Store.Delete(f.ctx, f.key(checkpointName)) // not before the encoder is there
}

// train fits one kind of encoder to the known edges.
func (f *building) train(kind string, checkpoints bag.Checkpoints) (_ train.Encoder, _ encoder.Meta, err error) {
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
		options := bag.Options{Epochs: s.Epochs, MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: f.Workers}
		r, err := fit.Bag(f.ctx, inputs, options, checkpoints, f.clock)
		if errors.Is(err, bag.ErrOtherRun) { // left by another version of this program
			f.Log.Warn("the checkpoint does not fit; training starts afresh", "generation", f.doc.Generation, "error", err)
			checkpoints.Resume = nil
			r, err = fit.Bag(f.ctx, inputs, options, checkpoints, f.clock)
		}
		if err != nil {
			return nil, meta, err
		}
		meta.Metrics, meta.Matcher = r.Report, r.Matcher
		return r.Encoder, meta, nil
	}
	return nil, meta, fmt.Errorf("unknown encoder %q; use bag or linear", kind)
}

// checkpoints keeps the training's state in the store, and resumes from it.
func (f *building) checkpoints() (c bag.Checkpoints, err error) {
	c.Resume, err = load(f.ctx, f.Store, f.key(checkpointName), bag.ReadState)
	if err != nil && !errors.Is(err, sink.ErrNotFound) {
		return c, err
	}
	last := f.Now()
	c.Due = func(int64) bool { return f.CheckpointEvery > 0 && f.Now().Sub(last) >= f.CheckpointEvery }
	c.Save = func(ctx context.Context, s *bag.State) error {
		if err := f.readError(); err != nil {
			return err
		}
		err := save(ctx, f.Store, f.key(checkpointName), func(w io.Writer) error {
			_, err := s.WriteTo(w)
			return err
		})
		last = f.Now()
		return err
	}
	return c, nil
}
