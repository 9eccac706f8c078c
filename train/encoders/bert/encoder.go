package bert

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/numeric"
)

// Kind is the encoder's name in configuration and artifacts.
const Kind = "bert"

const (
	// DefaultMaxTokens is GIANT's length of a text.
	DefaultMaxTokens = 128

	// batchTokens is the size of a batch on the CPU: more gains nothing there, and the activations
	// stay near the cache.
	batchTokens = 1024
	// deviceBatches is how many batches a backend that asks for larger ones gets side by side: it
	// computes one while the next is prepared.
	deviceBatches = 2
	// round is how many texts are tokenized at a time.
	round = 4096
)

// Options says how texts become embeddings.
type Options struct {
	// Pooling is compute.Mean or compute.First.
	Pooling compute.Pooling
	// MaxTokens is where texts are cut, [CLS] and [SEP] included; 0 means
	// DefaultMaxTokens or the model's positions, whichever is less.
	MaxTokens int
	// Workers is the number of batches that run side by side, 0 for one per
	// CPU; at most two where the backend asks for larger batches (compute.Batcher). It does not
	// change the result.
	Workers int
	// Precision is how an encoder multiplies; "" is Float32.
	Precision Precision
}

// ErrClosed: the encoder or the tuner has been closed.
var ErrClosed = errors.New("bert: closed")

// Encoder is Φ(T) = p/‖p‖, p the pooled hidden states of T; after Rotate Φ(T) = (p/‖p‖)·R.
type Encoder struct {
	model     *Model // what encodes
	trained   *Model // the weights in float32, nil for an encoder that was opened in int8
	tokenizer *wordpiece.Tokenizer
	options   Options
	rotation  []float32 // R, Dim×Dim, row-major; nil for none
	// batch is the size of a batch in tokens. Texts too few to fill share batches are cut into that
	// many smaller ones.
	batch, share int
	memory       *memory
	cleanup      runtime.Cleanup
}

var _ train.Encoder = (*Encoder)(nil)

// memory is what an encoder holds of its backend.
type memory struct {
	model *Model
	// slots holds a workspace for each batch that may run, nil until it is needed. Concurrent calls
	// share the workspaces, so memory stays bounded. Once the memory is freed, slots is closed.
	slots chan *Workspace
	once  sync.Once
}

// free waits for the batches that run and frees everything.
func (m *memory) free() {
	m.once.Do(func() {
		for range cap(m.slots) {
			if w := <-m.slots; w != nil {
				compute.Free(m.model.backend, w.buffers()...)
			}
		}
		close(m.slots)
		for _, p := range m.model.parameters() {
			compute.Free(m.model.backend, *p.buffer)
		}
	})
}

// Open makes the encoder of a model directory.
func Open(dir fs.FS, b compute.Backend, o Options) (*Encoder, error) {
	t, err := wordpiece.Load(dir)
	if err != nil {
		return nil, err
	}
	m, err := Load(dir, b)
	if err != nil {
		return nil, err
	}
	e, err := New(m, t, o)
	if err == nil && o.Precision == Int8 {
		e.trained, e.memory.model = nil, e.model // the weights in float32 are most of what int8 saves
	}
	return e, err
}

// New joins a model and its tokenizer.
func New(m *Model, t *wordpiece.Tokenizer, o Options) (*Encoder, error) {
	if t.Size() > m.config.VocabSize {
		return nil, fmt.Errorf("%w: the vocabulary has %d pieces, the model vectors for %d", ErrInvalid, t.Size(),
			m.config.VocabSize)
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = min(DefaultMaxTokens, m.config.MaxPositions)
	}
	if o.MaxTokens < 3 || o.MaxTokens > m.config.MaxPositions {
		return nil, fmt.Errorf("bert: texts of at most %d tokens, the model allows 3 to %d", o.MaxTokens,
			m.config.MaxPositions)
	}
	if o.Pooling != compute.First && o.Pooling != compute.Mean {
		return nil, fmt.Errorf("bert: unknown pooling %d", o.Pooling)
	}
	o.Workers = parallel.Workers(o.Workers)
	share := o.Workers // a batch for each core
	if _, ok := m.backend.(compute.Batcher); ok {
		o.Workers, share = min(o.Workers, deviceBatches), 1
	}
	precision := o.Precision
	o.Precision = Float32
	e := &Encoder{model: m, trained: m, tokenizer: t, options: o,
		batch: max(compute.BatchTokens(m.backend, deviceBatches*m.config.encodingBytes(), batchTokens), o.MaxTokens),
		share: share, memory: &memory{model: m, slots: make(chan *Workspace, o.Workers)}}
	for range o.Workers {
		e.memory.slots <- nil
	}
	// An encoder may still encode when another has taken its place, so that nobody knows when to
	// close it: then the garbage collector does.
	e.cleanup = runtime.AddCleanup(e, (*memory).free, e.memory)
	return e, e.SetPrecision(precision)
}

// Close waits for the texts that are being encoded and frees the model's memory on its backend. It is
// for encoders that follow one another; of others the garbage collector takes care in time.
func (e *Encoder) Close() error {
	e.cleanup.Stop()
	e.memory.free()
	return nil
}

// Kind returns "bert".
func (e *Encoder) Kind() string { return Kind }

// Options returns the options in effect.
func (e *Encoder) Options() Options { return e.options }

// Dim returns the length of an embedding, the model's hidden size.
func (e *Encoder) Dim() int { return e.model.config.HiddenSize }

// Rotation returns R (Dim×Dim, row-major, not to be changed), nil for none.
func (e *Encoder) Rotation() []float32 { return e.rotation }

// Rotate multiplies every embedding by axes (Dim×Dim, orthogonal), which it keeps. It does not touch
// the model, which other programs open without it. The encoder must not be in use.
func (e *Encoder) Rotate(axes []float32) {
	if e.rotation != nil {
		before := slices.Clone(e.rotation)
		numeric.Rotate(before, axes, e.Dim())
		axes = before
	}
	e.rotation = axes
}

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	if len(out) != len(texts)*e.Dim() {
		return fmt.Errorf("bert: %d numbers for %d embeddings of dimension %d", len(out), len(texts), e.Dim())
	}
	var all compute.Batch
	for len(texts) > 0 {
		n := min(round, len(texts))
		all = e.tokens(texts[:n], all)
		if err := e.encode(all, out[:n*e.Dim()]); err != nil {
			return err
		}
		texts, out = texts[n:], out[n*e.Dim():]
	}
	return nil
}

// tokens makes the batch of all texts, in the memory of old.
func (e *Encoder) tokens(texts []string, old compute.Batch) compute.Batch {
	b := compute.Batch{IDs: old.IDs[:0], Start: append(old.Start[:0], 0)}
	for _, t := range texts {
		b.IDs = e.tokenizer.Encode(t, e.options.MaxTokens, b.IDs)
		b.Start = append(b.Start, int32(len(b.IDs)))
	}
	return b
}

// encode computes batches side by side.
func (e *Encoder) encode(all compute.Batch, out []float32) error {
	ends := pack(all.Start, min(e.batch, all.Rows()/e.share+1))
	errs := make([]error, len(ends))
	parallel.ForEach(len(ends), 1, e.options.Workers, func(_, _, i, _ int) {
		first := 0
		if i > 0 {
			first = ends[i-1]
		}
		errs[i] = e.run(part(all, first, ends[i]), out[first*e.Dim():ends[i]*e.Dim()])
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// pack cuts texts into batches of at most size tokens, or of one text. It
// returns the number of the text after each batch.
func pack(start []int32, size int) []int {
	var ends []int
	for first, i := 0, 1; i < len(start); i++ {
		if i+1 == len(start) || int(start[i+1]-start[first]) > size {
			ends = append(ends, i)
			first = i
		}
	}
	return ends
}

// part is the batch of the texts from first to before end of all, with a mark of its own.
func part(all compute.Batch, first, end int) compute.Batch {
	from, to := all.Start[first], all.Start[end]
	b := compute.Batch{IDs: all.IDs[from:to], Mark: new(compute.Mark)}
	if all.Places != nil {
		b.Places = all.Places[from:to]
	}
	if all.Seeds != nil {
		b.Seeds = all.Seeds[first:end]
	}
	for _, s := range all.Start[first : end+1] {
		b.Start = append(b.Start, s-from)
	}
	return b
}

// run computes the embeddings of one batch.
func (e *Encoder) run(b compute.Batch, out []float32) error {
	w, open := <-e.memory.slots
	if !open {
		return ErrClosed
	}
	defer func() { e.memory.slots <- w }()
	if w == nil {
		// A text has two tokens at least, [CLS] and [SEP].
		w = e.model.NewWorkspace(e.batch, e.batch/2)
	}
	pooled, err := e.model.Pool(w, b, e.options.Pooling)
	if err != nil {
		return err
	}
	if err := read(e.model.backend, out, pooled); err != nil {
		return err
	}
	for z := range slices.Chunk(out, e.Dim()) {
		numeric.Normalize(z)
	}
	if e.rotation != nil {
		numeric.Rotate(out, e.rotation, e.Dim())
	}
	return nil
}
