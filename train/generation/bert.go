package generation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"giantstream/featurize/targets"
	"giantstream/train"
	"giantstream/train/bert"
	"giantstream/train/bert/compute/cpu"
	"giantstream/train/bert/wordpiece"
	"giantstream/train/encoder"
	"giantstream/train/eval"
	"giantstream/train/fit"
	"giantstream/train/internal/rng"
	"giantstream/train/linear"
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

// learner opens the model that training starts from, and puts the n-grams beside it
// that the settings ask for. They start from a linear solution (Rank×pifaDim), or from
// the texts' projection where weights is nil.
func (f *building) learner(weights []float32) (*learner, error) {
	tuner, err := f.tuner()
	if err != nil {
		return nil, err
	}
	l := &learner{Network: tuner, encoder: tuner.Encoder(), tokens: tuner.Tokens}
	rows := f.doc.Settings.BERT.NGrams
	if rows == 0 {
		return l, nil
	}
	f.clock.Stage("start of the n-grams", 0)
	table, err := wide.Start(f.features, f.projection, weights, f.pifaDim, tuner.Dim(), rows, f.Workers)
	if err = errors.Join(err, f.readError()); err != nil {
		return nil, err
	}
	if l.Network, err = wide.NewTuner(tuner, f.vectorizer, table, wide.Options{Workers: f.Workers}); err != nil {
		return nil, err
	}
	l.encoder, err = wide.New(tuner.Encoder(), f.vectorizer, table)
	return l, err
}

// trainBERT fine-tunes the model on the neighbourhoods.
func (f *building) trainBERT(in fit.Inputs, c *checkpoints) (e train.Encoder, r *xrt.Result, err error) {
	s := f.doc.Settings
	instances, held := eval.HoldOut(f.known.Neighbours, s.MaxDegree, s.Seed, streamBERTHold)
	tree := xmc.Finest(f.tree)
	source := &examples{f: f, tree: tree, instances: instances}
	options := xrt.Options{Epochs: float64(s.Epochs), Seed: s.Seed, Workers: f.Workers}
	if s.BERT != nil && s.BERT.CoarseToFine {
		options.Schedule = xrt.CoarseToFine
	}
	var weights []float32
	if s.BERT != nil && s.BERT.NGrams > 0 {
		start, _, err := fit.Linear(f.ctx, in, linear.Options{MaxDegree: s.MaxDegree, Seed: s.Seed, Workers: f.Workers}, f.clock)
		if err != nil {
			return nil, nil, fmt.Errorf("start of the n-grams: %w", err)
		}
		weights = start.Weights()
		wide.Suit(&options)
	}
	dim := 0 // of the model, known once it is open
	hooks := xrt.Hooks{Due: c.due, Save: func(ctx context.Context, _ int64, s io.WriterTo) error { return c.save(ctx, s) }}
	if len(held) > 0 {
		pairs := eval.DrawPairs(f.known.Neighbours, held, eval.PairsEach, s.Seed, streamBERTPairs)
		hooks.Judge = func(_ context.Context, embed func([]string, []float32) error) (float64, error) {
			return f.judge(pairs, dim, embed)
		}
	}
	err = c.resume(func(state io.Reader) error {
		l, err := f.learner(weights) // afresh: a state that fails leaves it half changed
		if err != nil {
			return err
		}
		dim, hooks.Resume = l.Dim(), state
		p := &pace{now: f.Now, log: f.Log, progress: f.clock, generation: f.doc.Generation, tokens: l.tokens}
		hooks.Point = p.point
		if r, err = xrt.Train(f.ctx, l, source, xmc.LevelsOf(tree), options, hooks, f.clock); err != nil {
			return err
		}
		e = l.encoder
		if tree.Levels() > f.tree.Levels() {
			r.Matcher = r.Matcher.WithoutLast()
		}
		return nil
	})
	return e, r, err
}

// judge is the AUC of held-out instances' neighbours.
func (f *building) judge(p *eval.Pairs, dim int, embed func([]string, []float32) error) (float64, error) {
	texts := make([]string, len(p.Nodes))
	for k, i := range p.Nodes {
		var err error
		if texts[k], err = f.corpus.texts.text(int(i)); err != nil {
			return 0, err
		}
	}
	z := make([]float32, len(texts)*dim)
	if err := embed(texts, z); err != nil {
		return 0, err
	}
	return p.AUC(z, dim), nil
}

// examples are the instances of a build as a training set. It implements
// xrt.Source.
type examples struct {
	f         *building
	tree      xmc.LabelTree
	instances []int32
}

func (x *examples) Instances() int64 { return int64(len(x.instances)) }

// Epoch yields the instances in the epoch's order.
func (x *examples) Epoch(_ context.Context, epoch int, skip int64) iter.Seq2[xrt.Example, error] {
	return func(yield func(xrt.Example, error) bool) {
		r := rng.New(x.f.doc.Settings.Seed, streamBERTOrder, uint64(epoch))
		order := r.Perm(len(x.instances))
		for _, k := range order[min(skip, int64(len(order))):] {
			i := int(x.instances[k])
			text, err := x.f.corpus.texts.text(i)
			e := xrt.Example{Text: text}
			e.Targets, e.Counts = targets.Of(x.tree, x.f.known.Neighbours.Row(i).Index)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
