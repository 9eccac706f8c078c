package fit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"giantstream/internal/regular"
	"giantstream/train"
	"giantstream/train/encoders"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/devices"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xrt"
)

// bertReport says how the training of a transformer went: the metrics of such an encoder.
type bertReport struct {
	// Report is that of the fine-tuning, nil where the model stays as it came.
	*trainer.Report
	// NGrams is the report of the n-grams beside the model and of their join, nil for a model alone.
	NGrams *hybridReport `json:"ngrams,omitempty"`
}

// trainBERT fine-tunes the model on the neighbourhoods. With n-grams, all views of a hybrid stand
// beside it. The model then stays as it came, unless the settings ask for epochs: what fine-tuning would
// teach it of the links, the n-grams know (docs/measurements/2026-11-23.md).
func trainBERT(ctx context.Context, t *Training) (*Trained, error) {
	b := t.Settings.BERT
	if b == nil || b.NGrams == 0 {
		return t.fineTune(ctx)
	}
	var report bertReport
	out := &Trained{}
	model, err := pretrainedBERT(t)
	if err != nil {
		return nil, err
	}
	if t.Settings.Epochs > 0 {
		tuned, err := t.fineTune(ctx)
		if err != nil {
			return nil, err
		}
		model, report.Report, out.Curve = tuned.Encoder, tuned.Curve, tuned.Curve
	}
	e, joined, err := t.trainJoined(ctx, NGrams, b.NGrams, model)
	if err != nil {
		return nil, err
	}
	report.NGrams = &joined
	out.Encoder, out.Metrics = e, report
	return out, nil
}

// fineTune trains the model alone.
func (t *Training) fineTune(ctx context.Context) (*Trained, error) {
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
	out := &Trained{}
	err = c.Resume(ctx, func(state io.Reader) error {
		// A new network for every attempt: a state that fails leaves the network half changed.
		tuner, err := t.tuner()
		if err != nil {
			return err
		}
		net := t.networkOf(tuner)
		defer net.Close()
		net.Network = t.share(Whole, net.Network)
		speed := &throughput{now: r.Now, log: r.Log, progress: r.Progress, tokens: net.tokens}
		hooks := t.hooks(net.Dim(), set.pairs, c, state)
		hooks.Point = speed.point
		trained, err := xrt.Train(ctx, net, set.Set, options, hooks, r.Progress)
		if err != nil {
			return err
		}
		if err := tuner.Encoder().SetPrecision(s.Precision); err != nil {
			return err
		}
		out.Encoder, out.Matcher, out.Curve = net.Encoder, trained.Matcher, &trained.Report
		out.Metrics = bertReport{Report: &trained.Report}
		if set.Tree.Levels() > t.Tree.Levels() {
			out.Matcher = out.Matcher.WithoutLast()
		}
		return nil
	})
	return out, err
}

// bertNetwork opens the model that training starts from.
func bertNetwork(_ context.Context, t *Training) (*Network, error) {
	tuner, err := t.tuner()
	if err != nil {
		return nil, err
	}
	return t.networkOf(tuner), nil
}

func (t *Training) networkOf(tuner *bert.Tuner) *Network {
	return &Network{Network: bert.NewNetwork(tuner, t.Texts.Text), Encoder: tuner.Encoder(), tokens: tuner.Tokens,
		close: tuner.Close}
}

// pretrainedBERT returns the model as it came.
func pretrainedBERT(t *Training) (train.Encoder, error) {
	tuner, err := t.tuner()
	if err != nil {
		return nil, err
	}
	e := tuner.Encoder()
	return e, errors.Join(tuner.Close(), e.SetPrecision(t.Settings.Precision))
}

// ErrModel: the model that training starts from cannot be opened.
var ErrModel = errors.New("cannot open the model")

// CheckEncoder refuses an encoder that does not exist. If its training starts from a model, it opens the model and
// closes it again: a build comes to it only after hours.
func (s Settings) CheckEncoder() error {
	k := KindOf(s.Encoder)
	if k.Name == "" {
		_, err := trainedKind(s.Encoder)
		return err
	}
	if !k.NeedsModel {
		return nil
	}
	dir, pooling, err := s.BERT.start()
	if err != nil {
		return err
	}
	e, err := bert.Open(dir, devices.OrCPU(nil), bert.Options{Pooling: pooling, MaxTokens: s.BERT.MaxTokens})
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrModel, s.BERT.Model, err)
	}
	return e.Close()
}

// start returns the directory of the model that training starts from, and how its vectors are pooled.
func (b *BERT) start() (fs.FS, compute.Pooling, error) {
	if b == nil || b.Model == "" {
		return nil, 0, errors.New("the encoder bert needs a model to start from: " +
			"set train.bert.model to a Hugging Face directory")
	}
	pooling, err := encoders.Pooling(b.Pooling)
	if err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(b.Model)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no directory")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w %s: %w", ErrModel, b.Model, err)
	}
	return regular.DirFS(b.Model), pooling, nil
}

// tuner opens the model that training starts from.
func (t *Training) tuner() (*bert.Tuner, error) {
	b := t.Settings.BERT
	dir, pooling, err := b.start()
	if err != nil {
		return nil, err
	}
	tokenizer, err := wordpiece.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrModel, b.Model, err)
	}
	model, err := bert.Load(dir, devices.OrCPU(t.Resources.Device))
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrModel, b.Model, err)
	}
	return bert.NewTuner(model, tokenizer, bert.TuneOptions{
		Pooling: pooling, MaxTokens: b.MaxTokens, Dropout: b.Dropout, DropTokens: b.DropTokens,
		Workers: t.Resources.Workers,
	})
}
