package generation

import (
	"errors"
	"io"

	"giantstream/train/bag"
	"giantstream/train/fit"
	"giantstream/train/linear"
	"giantstream/train/wide"
)

// startTable makes a table of n-grams of dimension dim that starts at a linear solution
// (Rank×pifaDim), or at the texts' projection where weights is nil.
func (f *building) startTable(weights []float32, dim int) (*bag.Model, error) {
	f.clock.Stage("start of the n-grams", 0)
	table, err := wide.Start(f.features, f.projection, weights, f.pifaDim, dim, f.doc.Settings.BERT.NGrams, f.Workers)
	return table, errors.Join(err, f.readError())
}

// trainNGrams trains a table of n-grams of dimension dim alone. It has checkpoints of its
// own.
func (f *building) trainNGrams(in fit.Inputs, set *trainingSet, dim int) (table *bag.Model, err error) {
	s := f.doc.Settings
	start, _, err := fit.Linear(f.ctx, in, linear.Options{MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: f.Workers}, f.clock)
	if err != nil {
		return nil, err
	}
	c, err := f.checkpoints(ngramsName)
	if err != nil {
		return nil, err
	}
	task := wide.Task{Vectorizer: f.vectorizer, Features: f.features, Source: set, Levels: set.levels(), Seed: s.Seed, Workers: f.Workers}
	err = c.resume(func(state io.Reader) error {
		if table, err = f.startTable(start.Weights(), dim); err != nil {
			return err
		}
		r, err := task.Train(f.ctx, table, set.hooks(dim, c, state), f.clock)
		if err != nil {
			return err
		}
		f.Log.Info("n-grams trained", "generation", f.doc.Generation, "steps", r.Steps, "best_step", r.Step, "resumed_step", r.Resumed)
		return f.drawCurve(ngramsCurveName, r)
	})
	return table, err
}
