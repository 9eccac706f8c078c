package generation

import (
	"encoding/json"
	"errors"
	"io"

	"giantstream/sink"
	"giantstream/train/bag"
	"giantstream/train/fit"
	"giantstream/train/linear"
	"giantstream/train/wide"
	"giantstream/train/xrt"
)

// ngramsReportName is the report of the n-grams' training, while the model's runs.
const ngramsReportName = "encoder/ngrams.json"

// startTable makes a table of n-grams of dimension dim that starts at a linear solution
// (Rank×pifaDim), or at the texts' projection where weights is nil.
func (f *building) startTable(weights []float32, dim int) (*bag.Model, error) {
	f.clock.Stage("start of the n-grams", 0)
	table, err := wide.Start(f.features, f.projection, weights, f.pifaDim, dim, f.doc.Settings.BERT.NGrams, f.Workers)
	return table, errors.Join(err, f.readError())
}

// trainNGrams trains a table of n-grams of dimension dim alone. It has checkpoints of its
// own.
func (f *building) trainNGrams(in fit.Inputs, set *trainingSet, dim int) (table *bag.Model, r *xrt.Report, err error) {
	s := f.doc.Settings
	start, _, err := fit.Linear(f.ctx, in, linear.Options{MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: f.Workers}, f.clock)
	if err != nil {
		return nil, r, err
	}
	c, err := f.checkpoints(ngramsName)
	if err != nil {
		return nil, r, err
	}
	task := wide.Task{Vectorizer: f.vectorizer, Features: f.features, Source: set, Levels: set.levels(), Seed: s.Seed, Workers: f.Workers}
	err = c.resume(func(state io.Reader) error {
		if table, err = f.startTable(start.Weights(), dim); err != nil {
			return err
		}
		report, err := task.Train(f.ctx, table, set.hooks(dim, c, state), f.clock)
		r = &report
		return err
	})
	if err != nil {
		return nil, r, err
	}
	f.Log.Info("n-grams trained", "generation", f.doc.Generation, "steps", r.Steps, "best_step", r.Step)
	return table, r, errors.Join(f.keepNGramsReport(r), f.drawCurve(ngramsCurveName, *r))
}

// keepNGramsReport stores a report for builds that resume the model's training.
func (f *building) keepNGramsReport(r *xrt.Report) error {
	if f.Store == nil {
		return nil
	}
	return save(f.ctx, f.Store, f.key(ngramsReportName), func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
}

// ngramsReport reads that report back, nil if there is none.
func (f *building) ngramsReport() (*xrt.Report, error) {
	r, err := load(f.ctx, f.Store, f.key(ngramsReportName), func(r io.Reader) (*xrt.Report, error) {
		report := &xrt.Report{}
		return report, json.NewDecoder(r).Decode(report)
	})
	if errors.Is(err, sink.ErrNotFound) {
		return nil, nil
	}
	return r, err
}
