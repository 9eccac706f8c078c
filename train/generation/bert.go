package generation

import (
	"fmt"
	"io"
	"os"

	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/bert"
	"giantstream/train/bert/compute/cpu"
	"giantstream/train/bert/wordpiece"
	"giantstream/train/encoder"
	"giantstream/train/fit"
	"giantstream/train/wide"
	"giantstream/train/xmc"
	"giantstream/train/xrt"
)

// BERT says which model a generation's encoder starts from.
type BERT struct {
	// Model is a directory as Hugging Face's save_pretrained writes it
	// (docs/format/bert.md).
	Model string `json:"model"`
	// Pooling is "mean", or "cls" with the pooler.
	Pooling string `json:"pooling"`
	// MaxTokens is where texts are cut.
	MaxTokens int `json:"max_tokens"`
	// Dropout and DropTokens are the shares of hidden states and attention, and
	// of a text's tokens, that are dropped in training (bert.TuneOptions).
	Dropout    float64 `json:"dropout,omitempty"`
	DropTokens float64 `json:"drop_tokens,omitempty"`
	// NGrams is how many n-grams have a vector beside the model (package wide);
	// 0 is none, and the model alone.
	NGrams int `json:"ngrams,omitempty"`
	// CoarseToFine trains the levels of the tree one after the other, as the
	// paper does, instead of all at once.
	CoarseToFine bool `json:"coarse_to_fine,omitempty"`
}

// Streams of random numbers, besides those of other parts of a build.
const (
	streamBERTHold  = 'H'
	streamBERTPairs = 'P'
	streamBERTOrder = 'O'
)

// tuner opens the model that training starts from.
func (f *building) tuner() (*bert.Tuner, error) {
	s := f.doc.Settings
	if s.BERT == nil || s.BERT.Model == "" {
		return nil, fmt.Errorf("the encoder bert needs a model to start from: set train.bert.model to a Hugging Face directory")
	}
	pooling, err := encoder.Pooling(s.BERT.Pooling)
	if err != nil {
		return nil, err
	}
	dir := os.DirFS(s.BERT.Model)
	tokenizer, err := wordpiece.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", s.BERT.Model, err)
	}
	model, err := bert.Load(dir, cpu.New())
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", s.BERT.Model, err)
	}
	return bert.NewTuner(model, tokenizer, bert.TuneOptions{
		Pooling: pooling, MaxTokens: s.BERT.MaxTokens, Dropout: s.BERT.Dropout, DropTokens: s.BERT.DropTokens, Workers: f.Workers,
	})
}

// learner is a network in training.
type learner struct {
	xrt.Network
	encoder train.Encoder // shares its weights
	tokens  func() int64  // that it has taken
}

// learner opens the model that training starts from, and puts the table of n-grams
// beside it that the settings ask for, which table makes for a model of dimension dim.
func (f *building) learner(table func(dim int) (*bag.Model, error)) (*learner, error) {
	tuner, err := f.tuner()
	if err != nil {
		return nil, err
	}
	l := &learner{Network: tuner, encoder: tuner.Encoder(), tokens: tuner.Tokens}
	if f.doc.Settings.BERT.NGrams == 0 {
		return l, nil
	}
	ngrams, err := table(tuner.Dim())
	if err != nil {
		return nil, fmt.Errorf("n-grams beside the model: %w", err)
	}
	if l.Network, err = wide.NewTuner(tuner, f.vectorizer, ngrams, wide.Options{Workers: f.Workers}); err != nil {
		return nil, err
	}
	l.encoder, err = wide.New(tuner.Encoder(), f.vectorizer, ngrams)
	return l, err
}

// BERTReport says how the training of a transformer went: the metrics of such an encoder.
type BERTReport struct {
	xrt.Report
	// NGrams says how that of the n-grams beside it went, before.
	NGrams *xrt.Report `json:"ngrams,omitempty"`
}

// trainBERT fine-tunes the model on the neighbourhoods.
func (f *building) trainBERT(in fit.Inputs, c *checkpoints) (e train.Encoder, report BERTReport, m *xmc.Matcher, err error) {
	s := f.doc.Settings
	set := f.trainingSet()
	options := xrt.Options{Epochs: float64(s.Epochs), Seed: s.Seed, Workers: f.Workers}
	if s.BERT != nil && s.BERT.CoarseToFine {
		options.Schedule = xrt.CoarseToFine
	}
	if s.BERT != nil && s.BERT.NGrams > 0 {
		wide.Suit(&options)
	}
	err = c.resume(func(state io.Reader) error {
		// Afresh: a state that fails leaves the learner half changed.
		l, err := f.learner(func(dim int) (table *bag.Model, err error) {
			if state == nil {
				table, report.NGrams, err = f.trainNGrams(in, set, dim)
				return table, err
			}
			if report.NGrams, err = f.ngramsReport(); err != nil {
				return nil, err
			}
			return f.startTable(nil, dim) // what it has learnt is in the state
		})
		if err != nil {
			return err
		}
		p := &pace{now: f.Now, log: f.Log, progress: f.clock, generation: f.doc.Generation, tokens: l.tokens}
		hooks := set.hooks(l.Dim(), c, state)
		hooks.Point = p.point
		r, err := xrt.Train(f.ctx, l, set, set.levels(), options, hooks, f.clock)
		if err != nil {
			return err
		}
		e, report.Report, m = l.encoder, r.Report, r.Matcher
		if set.tree.Levels() > f.tree.Levels() {
			m = m.WithoutLast()
		}
		return nil
	})
	return e, report, m, err
}
