package fit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"giantstream/internal/regular"
	"giantstream/train"
	"giantstream/train/encoders"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute/devices"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/encoders/wide"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xrt"
)

// bertReport says how the training of a transformer went: the metrics of such an encoder.
type bertReport struct {
	trainer.Report
	// NGrams is the report of the n-grams' training, before the transformer's.
	NGrams *trainer.Report `json:"ngrams,omitempty"`
	// TextWeight is the weight of the text beside the trained view's 1; 0 for a model alone.
	TextWeight float32 `json:"text_weight,omitempty"`
}

// trainBERT fine-tunes the model on the neighbourhoods. With n-grams beside it, both are joined to the
// text, as in a hybrid.
func trainBERT(ctx context.Context, t *Training) (*Trained, error) {
	c, err := t.Journal.Checkpoints(ctx, Whole)
	if err != nil {
		return nil, err
	}
	s, r := t.Settings, t.Resources
	set := t.trainingSet()
	options := xrt.Options{Epochs: float64(s.Epochs), Seed: s.Seed, Workers: r.Workers}
	if s.BERT != nil && s.BERT.CoarseToFine {
		options.Schedule = xrt.CoarseToFine
	}
	beside := s.BERT != nil && s.BERT.NGrams > 0
	var start *linear.Encoder
	if beside {
		options = options.BesideTable()
		if start, _, err = t.solve(ctx); err != nil {
			return nil, err
		}
	}
	var report bertReport
	out := &Trained{}
	err = c.Resume(ctx, func(state io.Reader) error {
		// A new network for every attempt: a state that fails leaves the network half changed.
		net, err := t.networkBeside(func(dim int) (table *bag.Model, err error) {
			if state == nil {
				table, report.NGrams, err = t.trainTable(ctx, set, start, dim)
				return table, err
			}
			if report.NGrams, err = t.Journal.Report(ctx, NGrams); err != nil {
				return nil, err
			}
			return t.startTable(nil, dim) // what the table has learnt is in the state
		})
		if err != nil {
			return err
		}
		defer net.Close()
		speed := &throughput{now: r.Now, log: r.Log, progress: r.Progress, tokens: net.tokens}
		hooks := t.hooks(net.Dim(), set.pairs, c, state)
		hooks.Point = speed.point
		trained, err := xrt.Train(ctx, net, set.Set, options, hooks, r.Progress)
		if err != nil {
			return err
		}
		report.Report = trained.Report
		out.Encoder, out.Metrics, out.Matcher, out.Curve = net.Encoder, report, trained.Matcher, &report.Report
		if set.Tree.Levels() > t.Tree.Levels() {
			out.Matcher = out.Matcher.WithoutLast()
		}
		return nil
	})
	if err != nil || !beside {
		return out, err
	}
	joined, err := t.join(ctx, hybrid.Views{Encoder: out.Encoder}, start, set.pairs)
	if err != nil {
		return nil, err
	}
	report.TextWeight = joined.Views().TextWeight
	out.Encoder, out.Metrics = joined, report
	return out, nil
}

// bertNetwork returns the model with n-grams beside it that start from the projection of the texts.
func bertNetwork(_ context.Context, t *Training) (*Network, error) {
	return t.networkBeside(func(dim int) (*bag.Model, error) { return t.startTable(nil, dim) })
}

func pretrainedBERT(t *Training) (train.Encoder, error) {
	tuner, err := t.tuner()
	if err != nil {
		return nil, err
	}
	return tuner.Encoder(), tuner.Close()
}

// tuner opens the model that training starts from.
func (t *Training) tuner() (*bert.Tuner, error) {
	b := t.Settings.BERT
	if b == nil || b.Model == "" {
		return nil, errors.New("the encoder bert needs a model to start from: " +
			"set train.bert.model to a Hugging Face directory")
	}
	pooling, err := encoders.Pooling(b.Pooling)
	if err != nil {
		return nil, err
	}
	dir := regular.DirFS(b.Model)
	tokenizer, err := wordpiece.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", b.Model, err)
	}
	model, err := bert.Load(dir, devices.OrCPU(t.Resources.Device))
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", b.Model, err)
	}
	return bert.NewTuner(model, tokenizer, bert.TuneOptions{
		Pooling: pooling, MaxTokens: b.MaxTokens, Dropout: b.Dropout, DropTokens: b.DropTokens,
		Workers: t.Resources.Workers,
	})
}

// networkBeside opens the model that training starts from. If the settings ask for n-grams, it puts
// the table beside the model that the function makes for the model's dimension.
func (t *Training) networkBeside(table func(dim int) (*bag.Model, error)) (_ *Network, err error) {
	tuner, err := t.tuner()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tuner.Close())
		}
	}()
	net := &Network{Network: bert.NewNetwork(tuner, t.Texts.Text), Encoder: tuner.Encoder(), tokens: tuner.Tokens,
		close: tuner.Close}
	if t.Settings.BERT.NGrams == 0 {
		return net, nil
	}
	ngrams, err := table(tuner.Dim())
	if err != nil {
		return nil, fmt.Errorf("n-grams beside the model: %w", err)
	}
	if net.Network, err = wide.NewTuner(net.Network, t.Features, ngrams,
		wide.Options{Workers: t.Resources.Workers}); err != nil {
		return nil, err
	}
	net.Encoder, err = wide.New(tuner.Encoder(), t.Vectorizer, ngrams)
	return net, err
}

// startTable makes a table of n-grams of dimension dim that starts at a linear solution (Rank×Dim),
// or at the texts' projection where weights is nil.
func (t *Training) startTable(weights []float32, dim int) (*bag.Model, error) {
	r := t.Resources
	r.Progress.Stage("start of the n-grams", 0)
	table, err := wide.Start(t.Features, t.Projection, weights, t.Dim, dim, t.Settings.BERT.NGrams, r.Workers)
	return table, errors.Join(err, t.Err())
}

// trainTable trains a table of n-grams of dimension dim alone, from the linear solution. It has
// checkpoints of its own.
func (t *Training) trainTable(ctx context.Context, set *trainingSet, start *linear.Encoder, dim int) (
	*bag.Model, *trainer.Report, error) {
	c, err := t.Journal.Checkpoints(ctx, NGrams)
	if err != nil {
		return nil, nil, err
	}
	r := t.Resources
	var table *bag.Model
	var report trainer.Report
	err = c.Resume(ctx, func(state io.Reader) (err error) {
		if table, err = t.startTable(start.Weights(), dim); err != nil {
			return err
		}
		report, err = xrt.TrainTable(ctx, table, t.Features, set.Set, linksWeight(t.Graph.Neighbours),
			t.Settings.Seed, r.Workers, t.hooks(dim, set.pairs, c, state), r.Progress)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	r.Log.Info("n-grams trained", "steps", report.Steps, "best_step", report.Step)
	return table, &report, t.Journal.PutReport(ctx, NGrams, &report)
}
