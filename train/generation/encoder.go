package generation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/fit"
	"giantstream/train/linear"
)

// checkpointName holds the state of an encoder's training while it runs.
const checkpointName = "encoder/checkpoint"

// trainEncoder trains the encoder that the settings name, or loads it if it
// is trained already.
func (f *building) trainEncoder() error {
	trained, err := loadEncoder(f.ctx, f.Store, f.doc.Generation, f.vectorizer, f.projection)
	if err == nil {
		f.encoder = trained
		return nil
	}
	if !errors.Is(err, sink.ErrNotFound) {
		return err
	}
	checkpoints, err := f.checkpoints()
	if err != nil {
		return err
	}
	var report any
	if f.encoder, report, err = f.train(f.doc.Settings.Encoder, checkpoints); err != nil {
		return err
	}
	metrics, err := json.Marshal(report)
	if err != nil {
		return err
	}
	size, err := saveEncoder(f.ctx, f.Store, f.doc.Generation, f.encoder)
	if err != nil {
		return err
	}
	f.doc.Encoder = EncoderStats{Kind: f.encoder.Kind(), Dim: f.encoder.Dim(), Bytes: size, Metrics: metrics}
	// The document names the trained encoder before its checkpoint goes.
	if err := f.doc.save(f.ctx, f.Store); err != nil {
		return err
	}
	return f.Store.Delete(f.ctx, f.key(checkpointName))
}

// train fits one kind of encoder to the known edges and returns the trainer's
// report beside it.
func (f *building) train(kind string, checkpoints bag.Checkpoints) (train.Encoder, any, error) {
	s := f.doc.Settings
	switch kind {
	case linear.Kind:
		return asEncoder(fit.Linear(f.ctx, f.inputs(), linear.Options{MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: f.Workers}, f.clock))
	case bag.Kind:
		r, err := fit.Bag(f.ctx, f.inputs(), bag.Options{Epochs: s.Epochs, MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: f.Workers}, checkpoints, f.clock)
		if err != nil {
			return nil, nil, err
		}
		return r.Encoder, r.Report, nil
	}
	return nil, nil, fmt.Errorf("unknown encoder %q; use bag or linear", kind)
}

func asEncoder(e *linear.Encoder, r linear.Report, err error) (train.Encoder, any, error) {
	return e, r, err
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
		last = f.Now()
		return save(ctx, f.Store, f.key(checkpointName), func(w io.Writer) error {
			_, err := s.WriteTo(w)
			return err
		})
	}
	return c, nil
}
