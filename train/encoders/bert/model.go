package bert

import (
	"fmt"

	"giantstream/train/encoders/bert/compute"
)

// Model is a BERT encoder: token ids to a vector per token. It is safe for
// concurrent use; each goroutine needs a Workspace of its own.
type Model struct {
	config  Config
	backend compute.Backend
	weights
}

// Config returns what the model's config.json says.
func (m *Model) Config() Config { return m.config }

// Workspace is the memory of one forward pass, for batches up to a size.
type Workspace struct {
	rows, texts int
	hidden      compute.Buffer // rows × hidden size: input and output of a layer
	qkv         compute.Buffer // rows × 3 hidden sizes
	inner       compute.Buffer // rows × hidden size
	wide        compute.Buffer // rows × intermediate size
	pooled      compute.Buffer // texts × hidden size
	embedded    compute.Buffer // texts × hidden size
}

// NewWorkspace makes the memory for batches of at most rows tokens in at most
// texts texts.
func (m *Model) NewWorkspace(rows, texts int) *Workspace {
	h := m.config.HiddenSize
	return &Workspace{
		rows: rows, texts: texts,
		hidden: m.backend.New(rows * h), qkv: m.backend.New(rows * 3 * h), inner: m.backend.New(rows * h),
		wide:   m.backend.New(rows * m.config.IntermediateSize),
		pooled: m.backend.New(texts * h), embedded: m.backend.New(texts * h),
	}
}

// buffers are all buffers of the workspace.
func (w *Workspace) buffers() []compute.Buffer {
	return []compute.Buffer{w.hidden, w.qkv, w.inner, w.wide, w.pooled, w.embedded}
}

// encodingBytes is what a workspace takes for a token, 4 bytes a number. A text has 2 tokens at
// least, so the two buffers with a row per text are one hidden size.
func (c Config) encodingBytes() int64 {
	return 4 * (6*int64(c.HiddenSize) + int64(c.IntermediateSize))
}

// read copies numbers from a backend, where its failures come to light.
func read(be compute.Backend, dst []float32, src compute.Buffer) error {
	if err := be.Read(dst, src); err != nil {
		return fmt.Errorf("bert: %w: %w", compute.ErrFailed, err)
	}
	return nil
}

// Forward computes the hidden states of the last layer, a row per token. The
// buffer belongs to w.
func (m *Model) Forward(w *Workspace, b compute.Batch) (compute.Buffer, error) {
	if err := m.check(w, b); err != nil {
		return nil, err
	}
	be, rows := m.backend, b.Rows()
	heads := m.config.Heads
	be.Embed(w.hidden, b, &m.embedding)
	for i := range m.layers {
		l := &m.layers[i]
		be.Linear(w.qkv, w.hidden, rows, l.qkv, compute.Identity)
		be.Attend(w.inner, w.qkv, b, heads, m.config.HiddenSize/heads, compute.Dropout{})
		be.Linear(w.qkv, w.inner, rows, l.attend, compute.Identity)
		be.AddNorm(w.hidden, w.qkv, w.hidden, rows, &l.norm)
		be.Linear(w.wide, w.hidden, rows, l.widen, compute.GELU)
		be.Linear(w.inner, w.wide, rows, l.narrow, compute.Identity)
		be.AddNorm(w.hidden, w.inner, w.hidden, rows, &l.last)
	}
	return w.hidden, nil
}

// Pool runs Forward and makes one vector per text. compute.First goes through
// the model's pooler, if it has one. The buffer belongs to w.
func (m *Model) Pool(w *Workspace, b compute.Batch, p compute.Pooling) (compute.Buffer, error) {
	hidden, err := m.Forward(w, b)
	if err != nil {
		return nil, err
	}
	m.backend.Pool(w.pooled, hidden, b, m.config.HiddenSize, p)
	if p != compute.First || m.pooler == nil {
		return w.pooled, nil
	}
	m.backend.Linear(w.embedded, w.pooled, b.Texts(), m.pooler, compute.Tanh)
	return w.embedded, nil
}

// check refuses a batch with indices beyond a table, or one too large for the workspace.
func (m *Model) check(w *Workspace, b compute.Batch) error {
	if len(b.Start) < 2 || b.Start[0] != 0 || int(b.Start[b.Texts()]) != b.Rows() {
		return fmt.Errorf("bert: a batch of %d tokens with starts %v", b.Rows(), b.Start)
	}
	if b.Rows() > w.rows || b.Texts() > w.texts {
		return fmt.Errorf("bert: %d tokens in %d texts, the workspace has room for %d in %d", b.Rows(), b.Texts(),
			w.rows, w.texts)
	}
	for i := range b.Texts() {
		if n := int(b.Start[i+1]) - int(b.Start[i]); n < 1 || n > m.config.MaxPositions {
			return fmt.Errorf("bert: a text of %d tokens, the model has positions for 1 to %d",
				n, m.config.MaxPositions)
		}
	}
	for _, id := range b.IDs {
		if id < 0 || int(id) >= m.config.VocabSize {
			return fmt.Errorf("bert: token id %d, the model has 0 to %d", id, m.config.VocabSize-1)
		}
	}
	return nil
}
