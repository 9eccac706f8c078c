package bert

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/train"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/wordpiece"
)

const (
	// stepTokens is the size of the batches that a training step is cut into on the CPU.
	// They are the same for any number of workers, and so are the sums.
	stepTokens = 1024
	// keptBatches is how many of them keep their activations between Forward and Backward. For the
	// others the forward pass runs again. Larger batches are kept as long as they have no more
	// tokens than these, or only one.
	keptBatches = 4
)

// TuneOptions says how a model is trained.
type TuneOptions struct {
	// Pooling is compute.Mean or compute.First.
	Pooling compute.Pooling
	// MaxTokens is where texts are cut, as in Options.
	MaxTokens int
	// Beta1, Beta2 and Epsilon are AdamW's, 0 for 0.9, 0.999 and 1e-8.
	Beta1, Beta2, Epsilon float64
	// WeightDecay is that of all but biases and normalizations, 0 for 0.01.
	WeightDecay float64
	// ClipNorm is the largest norm that a step's gradient keeps, 0 for 1.
	ClipNorm float64
	// Dropout is BERT's, of hidden states and of attention. DropTokens is the share of a text's
	// tokens that are left out, other than [CLS] and [SEP]. Both apply only to texts with a seed; 0
	// means none.
	Dropout, DropTokens float64
	// Workers is how many cores an operation may use, 0 for all. For a large product the backend
	// decides (in package cpu, the registered BLAS). Workers does not change the result.
	Workers int
}

func (o *TuneOptions) complete() error {
	for _, f := range []struct {
		name            string
		value           *float64
		otherwise, most float64
	}{
		{"Beta1", &o.Beta1, 0.9, 1},
		{"Beta2", &o.Beta2, 0.999, 1},
		{"Epsilon", &o.Epsilon, 1e-8, 1},
		{"WeightDecay", &o.WeightDecay, 0.01, math.MaxFloat64},
		{"ClipNorm", &o.ClipNorm, 1, math.MaxFloat64},
	} {
		if *f.value == 0 {
			*f.value = f.otherwise
		}
		if !(*f.value > 0 && *f.value < f.most) {
			return fmt.Errorf("bert: %s is %v, it must be above 0 and below %v", f.name, *f.value, f.most)
		}
	}
	if !(o.Dropout >= 0 && o.Dropout < 1) || !(o.DropTokens >= 0 && o.DropTokens < 1) {
		return fmt.Errorf("bert: shares of %v and %v are dropped, they must be at least 0 and below 1", o.Dropout,
			o.DropTokens)
	}
	return nil
}

// Tuner trains a model's weights: Forward, a loss of the caller's, Backward,
// and after one or more such pairs Update. It is not safe for concurrent use, and
// neither are its encoders while Update or ReadState runs.
type Tuner struct {
	encoder *Encoder
	options TuneOptions
	backend compute.Backend
	pass    *pass
	batch   int   // size of the batches that a step is cut into, in tokens
	steps   int64 // updates so far
	tokens  int64 // that Forward has taken

	weights, gradients []parameter
	means, squares     []compute.Buffer // of the gradients, running
	norms              compute.Buffer   // squared norm of each gradient

	// The last Forward: its tokens, the batches of them and the text after each, the activations of
	// the first batches. The last element of kept serves all further batches and holds the
	// activations of batch last.
	all   compute.Batch
	parts []compute.Batch
	ends  []int
	// Of ForwardSlices: the text after each slice, nil for a Forward without slices, and the batch after each.
	bounds, slicesEnd []int
	kept              []*activations
	last              int
	ready             bool // for Backward

	spoilt bool // by a state that could not be read
	closed bool
}

var (
	// ErrOrder: Backward without a Forward before it.
	ErrOrder = errors.New("bert: Backward takes the gradient of one Forward, which must come before it")
	// ErrSpoilt: a state was read only in part, so the weights are a mix of two models.
	ErrSpoilt = errors.New(
		"bert: the weights are spoilt by a state that cannot be read; read a good one, or open the model again")
)

// NewTuner makes a tuner of a model, whose weights it will change.
func NewTuner(m *Model, t *wordpiece.Tokenizer, o TuneOptions) (*Tuner, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	e, err := New(m, t, Options{Pooling: o.Pooling, MaxTokens: o.MaxTokens, Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	be := m.backend.Spread(o.Workers)
	trained := m.weights
	if o.Pooling != compute.First {
		trained.pooler = nil // not between weights and loss
	}
	gradient := trained.zeros(be)
	batch := max(compute.BatchTokens(be, m.config.trainingBytes(), stepTokens), e.options.MaxTokens)
	u := &Tuner{
		encoder: e, options: o, backend: be, pass: newPass(m, be, o, gradient, batch, batch/2), batch: batch,
		weights: trained.parameters(), gradients: gradient.parameters(),
	}
	for _, p := range u.weights {
		n := (*p.buffer).Len()
		u.means, u.squares = append(u.means, zeros(be, n)), append(u.squares, zeros(be, n))
	}
	u.norms = zeros(be, len(u.weights))
	return u, nil
}

// Close frees what training takes of the backend's memory. The encoder and its weights remain.
func (t *Tuner) Close() error {
	if t.closed {
		return nil
	}
	t.closed, t.ready = true, false
	for i, g := range t.gradients {
		compute.Free(t.backend, *g.buffer, t.means[i], t.squares[i])
	}
	compute.Free(t.backend, t.norms)
	compute.Free(t.backend, t.pass.buffers()...)
	for _, a := range t.kept {
		compute.Free(t.backend, a.buffers()...)
	}
	// A backend that frees by garbage collection finds nothing of it here.
	t.gradients, t.means, t.squares, t.norms, t.pass, t.kept = nil, nil, nil, nil, nil, nil
	return nil
}

// usable returns why the tuner cannot go on, nil if it can.
func (t *Tuner) usable() error {
	switch {
	case t.closed:
		return ErrClosed
	case t.spoilt:
		return ErrSpoilt
	}
	return nil
}

// Dim returns the length of a text's vector, the model's hidden size.
func (t *Tuner) Dim() int { return t.encoder.Dim() }

// Tokens returns how many tokens Forward has taken so far, for measurements.
func (t *Tuner) Tokens() int64 { return t.tokens }

// Encoder returns an encoder with the current weights, which it shares.
func (t *Tuner) Encoder() *Encoder { return t.encoder }

// Forward writes each text's vector to out, texts × Dim, pooled but, unlike an
// encoder's, not normalized. It keeps what Backward needs. seeds has one for each
// text, which decides what is dropped of it, or is nil: then nothing is.
func (t *Tuner) Forward(texts []string, seeds []uint64, out []float32) error {
	return t.forward(t.encoder.tokens(texts, t.all), seeds, out)
}

// forward is Forward of texts that are tokenized.
func (t *Tuner) forward(all compute.Batch, seeds []uint64, out []float32) error {
	t.all, t.ready = all, false
	texts := all.Texts()
	if len(out) != texts*t.Dim() {
		return fmt.Errorf("bert: %d numbers for %d vectors of dimension %d", len(out), texts, t.Dim())
	}
	if seeds != nil && len(seeds) != texts {
		return fmt.Errorf("bert: %d seeds for %d texts", len(seeds), texts)
	}
	if err := t.usable(); err != nil {
		return err
	}
	if t.all.Seeds = slices.Clone(seeds); seeds != nil {
		thin(&t.all, t.options.DropTokens)
	}
	t.tokens += int64(t.all.Rows())
	bounds := t.bounds
	if bounds == nil {
		bounds = []int{texts}
	}
	t.ends, t.slicesEnd = packSlices(t.all.Start, bounds, t.batch)
	t.parts = t.parts[:0]
	for i := range t.ends {
		first, end := t.texts(i)
		b := part(t.all, first, end)
		t.parts = append(t.parts, b)
		outcome := t.pass.forward(t.activations(i), b)
		if err := read(t.backend, out[first*t.Dim():end*t.Dim()], outcome); err != nil {
			return err
		}
		t.last = i
	}
	t.ready = true
	return nil
}

// texts returns which texts batch i has.
func (t *Tuner) texts(i int) (first, end int) {
	if i > 0 {
		first = t.ends[i-1]
	}
	return first, t.ends[i]
}

// activations returns the place for those of batch i.
func (t *Tuner) activations(i int) *activations {
	i = min(i, t.mayKeep()-1)
	if i == len(t.kept) {
		t.kept = append(t.kept, newActivations(t.encoder.model, t.backend, t.batch, t.batch/2))
	}
	return t.kept[i]
}

// mayKeep is how many batches keep their activations.
func (t *Tuner) mayKeep() int { return max(1, keptBatches*stepTokens/t.batch) }

// Backward adds to the gradients, given the gradient of the loss with respect to the vectors that
// the last Forward wrote, in the same order.
func (t *Tuner) Backward(grad []float32) error {
	if !t.ready {
		return ErrOrder
	}
	if want := t.all.Texts() * t.Dim(); len(grad) != want {
		return fmt.Errorf("bert: a gradient of %d numbers, the last Forward gave %d", len(grad), want)
	}
	t.ready = false
	for i := range t.ends {
		first, end := t.texts(i)
		t.backward(i, grad[first*t.Dim():end*t.Dim()])
	}
	return nil
}

// backward adds the gradient of batch i, whose activations it makes again if they are not kept.
func (t *Tuner) backward(i int, grad []float32) {
	b := t.parts[i]
	if i >= t.mayKeep()-1 && i != t.last {
		t.pass.forward(t.activations(i), b)
		t.last = i
	}
	t.backend.Write(t.pass.pooledSlope, grad)
	t.pass.backward(t.activations(i), b, t.pass.pooledSlope)
}

// Update takes one step of AdamW along the gradients, at the given learning rate, and sets the
// gradients to zero. It returns the norm of the gradient before clipping. If the norm is not
// finite, no weight changes and Update returns an error.
func (t *Tuner) Update(rate float64) (norm float64, err error) {
	if err := t.usable(); err != nil {
		return 0, err
	}
	s := compute.Step{
		Number: t.steps + 1, Rate: rate,
		Beta1: t.options.Beta1, Beta2: t.options.Beta2, Epsilon: t.options.Epsilon, Clip: t.options.ClipNorm,
	}
	for i, g := range t.gradients {
		t.backend.Squares(t.norms, i, *g.buffer)
	}
	for i, w := range t.weights {
		s.Decay = 0
		if w.decays {
			s.Decay = t.options.WeightDecay
		}
		t.backend.AdamW(*w.buffer, t.means[i], t.squares[i], *t.gradients[i].buffer, t.norms, &s)
	}
	squares := make([]float32, len(t.weights))
	if err := read(t.backend, squares, t.norms); err != nil {
		return 0, err
	}
	for _, x := range squares {
		norm += float64(x)
	}
	if norm = math.Sqrt(norm); math.IsNaN(norm) || math.IsInf(norm, 0) {
		return norm,
			fmt.Errorf("bert: %w: the gradient of step %d is not finite; no weight was changed", train.ErrDiverged,
				s.Number)
	}
	t.steps++
	t.ready = false // what Forward kept belongs to the old weights
	return norm, nil
}
