// Package answer answers which nodes are nearest to a node or a text: from the embeddings of the generation being
// served, and what was committed after its cut. Handler answers over HTTP.
//
// A Catalog reads only the store, so any number of processes can answer, whatever else they do. Its answers are
// those of a consumer that holds the embeddings topic: the newest text of each node, encoded by the generation
// being served. The same store gives the same answers.
package answer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/nearest"
)

// Errors of questions.
var (
	// ErrEmpty: there is no generation yet, or its embeddings are still being read.
	ErrEmpty = errors.New("no embeddings yet")
	// ErrUnknown: no node has this id.
	ErrUnknown = errors.New("no such node")
	// ErrNoText: the text, or the node's, has nothing that the encoder knows, so that it is near to nothing.
	ErrNoText = errors.New("no text that the encoder knows")
)

// batch is how many texts are encoded, and embeddings indexed, at a time.
const batch = 1024

// Log is the commit log as a Catalog follows it.
type Log interface {
	// Stretches yields what a shard has committed after manifest `after`, oldest first; nothing if there is nothing
	// newer. It ends at the manifest that was the newest at the call, or a later one.
	Stretches(ctx context.Context, shard int, after int64) iter.Seq2[Stretch, error]
}

// Stretch is a piece of the commit log that ends with manifest To. Each node has at most one row in it. Of a row,
// id, text and whether the node was deleted are read; its strings may be the reader's.
type Stretch struct {
	To   int64
	Rows iter.Seq2[rows.Row, error]
}

// Options of a Catalog.
type Options struct {
	Store sink.Store // has the embeddings of generations
	Log   Log
	// Shards of the log.
	Shards int
	// Generation returns the one being served, nil before the first.
	Generation func() *generation.Generation
	// Complements are read, which GoesWith answers from.
	Complements bool
	// Exact searches all embeddings for each question: for processes that answer few.
	Exact bool
}

// Catalog is safe for concurrent use, but for Update, which one goroutine calls.
type Catalog struct {
	opts Options
	now  atomic.Pointer[state]
}

// state is the embeddings of one generation, brought up to the newest manifests.
type state struct {
	generation *generation.Generation
	index      *nearest.Index
	noText     atomic.Pointer[map[string]struct{}] // replaced, never changed
	seq        []int64                             // by shard: the newest manifest that is in the index
	drift      drift                               // of what came after the generation's cut
	// complements are those of the orders at the cut, nil for none.
	complements *complements
}

// New returns an empty catalog.
func New(o Options) *Catalog { return &Catalog{opts: o} }

// Update brings the catalog up to what is committed now, and to the generation being served now. It reports whether
// anything has changed. While it reads a new generation, the former one answers. After an error, the next Update
// goes on from where this one stopped.
func (c *Catalog) Update(ctx context.Context) (changed bool, err error) {
	g := c.opts.Generation()
	if g == nil {
		return false, nil
	}
	s := c.now.Load()
	if s == nil || s.generation.Doc.Generation != g.Doc.Generation {
		if s, err = c.load(ctx, g); err != nil {
			return false, fmt.Errorf("read the embeddings of generation %d: %w", g.Doc.Generation, err)
		}
		// Changes after the cut come first, so that no answer goes back in time.
		if _, err := c.follow(ctx, s); err != nil {
			return false, err
		}
		c.now.Store(s)
		return true, nil
	}
	return c.follow(ctx, s)
}

// load indexes a generation's own embeddings.
func (c *Catalog) load(ctx context.Context, g *generation.Generation) (*state, error) {
	s := &state{generation: g, index: nearest.New(dim(g)), seq: make([]int64, c.opts.Shards)}
	s.noText.Store(&map[string]struct{}{})
	if c.opts.Complements {
		var err error
		if s.complements, err = readComplements(ctx, c.opts.Store, g.Doc); err != nil {
			return nil, err
		}
	}
	n := 0
	for _, part := range g.Doc.Embeddings {
		n += int(part.Rows)
	}
	if size := nearest.Sample(n); size > 0 && !c.opts.Exact {
		sample := make([]float32, 0, size*s.index.Dim())
		at := 0
		for r, err := range c.stored(ctx, g) {
			if err != nil {
				return nil, err
			}
			if taken := len(sample) / s.index.Dim(); len(r.Vector) > 0 && at >= taken*n/size && taken < size {
				sample = append(sample, r.Vector...)
			}
			at++
		}
		s.index.Train(n, sample)
	}
	w := s.writer()
	for r, err := range c.stored(ctx, g) {
		if err == nil {
			err = w.add(r)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	s.index.Calibrate()
	for shard := range s.seq {
		s.seq[shard] = g.Doc.Cut[shard]
	}
	return s, nil
}

// dim is how many numbers the embeddings of a generation have as they are stored.
func dim(g *generation.Generation) int {
	if stored := g.Doc.Settings.Stored.Dim; stored > 0 {
		return min(stored, g.Encoder.Dim())
	}
	return g.Encoder.Dim()
}

// stored yields the embeddings of a generation at its cut.
func (c *Catalog) stored(ctx context.Context, g *generation.Generation) iter.Seq2[embedding.Record, error] {
	return func(yield func(embedding.Record, error) bool) {
		for _, part := range g.Doc.Embeddings {
			for r, err := range embedding.ReadParquet(ctx, c.opts.Store, part.Ref()) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// follow adds what was committed since the last call.
func (c *Catalog) follow(ctx context.Context, s *state) (changed bool, err error) {
	for shard := range s.seq {
		for stretch, err := range c.opts.Log.Stretches(ctx, shard, s.seq[shard]) {
			if err != nil {
				return changed, err
			}
			w := s.writer()
			for r, err := range stretch.Rows {
				if err == nil {
					err = w.addText(r.NodeID, r.Text, r.Deleted)
				}
				if err != nil {
					return changed, err
				}
			}
			if err := w.flush(); err != nil {
				return changed, err
			}
			changed, s.seq[shard] = true, stretch.To
		}
	}
	return changed, nil
}

// writer brings records into the index, a batch at a time.
type writer struct {
	*state
	noText map[string]struct{} // a copy, or nil as long as there is nothing to change

	ids     []string
	vectors []float32

	textIDs []string // of texts to encode
	texts   []string
}

func (s *state) writer() *writer { return &writer{state: s} }

// add adds an embedding. Its strings and vectors are of the reader, and kept as copies.
func (w *writer) add(r embedding.Record) error {
	id := strings.Clone(r.NodeID)
	w.setNoText(id, !r.Deleted && len(r.Vector) == 0)
	if r.Deleted || len(r.Vector) == 0 {
		w.index.Remove(id)
		return nil
	}
	w.ids, w.vectors = append(w.ids, id), append(w.vectors, r.Vector...)
	if len(w.ids) < batch {
		return nil
	}
	return w.flush()
}

// addText adds a node by its text.
func (w *writer) addText(id, text string, deleted bool) error {
	if deleted {
		w.drift.compare(w.vector(id), nil)
		return w.add(embedding.Record{NodeID: id, Deleted: true})
	}
	w.textIDs, w.texts = append(w.textIDs, strings.Clone(id)), append(w.texts, strings.Clone(text))
	if len(w.texts) < batch {
		return nil
	}
	return w.flush()
}

// vector returns a node's embedding as the index has it, nil for none.
func (w *writer) vector(id string) []float32 {
	v := make([]float32, w.index.Dim())
	if !w.index.Vector(id, v) {
		return nil
	}
	return v
}

func (w *writer) flush() error {
	if len(w.texts) > 0 {
		records, err := w.generation.EmbedNodes(w.textIDs, w.texts)
		if err != nil {
			return err
		}
		ids := w.textIDs
		w.textIDs, w.texts = nil, nil
		for i, r := range records {
			r.NodeID = ids[i]
			w.drift.compare(w.vector(r.NodeID), r.Vector)
			if err := w.add(r); err != nil {
				return err
			}
		}
	}
	if changed := w.noText; changed != nil {
		w.state.noText.Store(&changed)
		w.noText = nil
	}
	err := w.index.Set(w.ids, w.vectors)
	w.ids, w.vectors = w.ids[:0], w.vectors[:0]
	return err
}

// setNoText notes whether a node is one without text.
func (w *writer) setNoText(id string, is bool) {
	known := w.noText
	if known == nil {
		known = *w.state.noText.Load()
	}
	if _, was := known[id]; was == is {
		return
	}
	if w.noText == nil {
		w.noText = maps.Clone(known)
	}
	if is {
		w.noText[id] = struct{}{}
	} else {
		delete(w.noText, id)
	}
}

// Size says what a catalog has.
type Size struct {
	Generation int64
	Nodes      int
	// Cells of the index, and how many of them a question looks into.
	Cells, Probed int
}

// Size returns ErrEmpty as long as no question can be answered.
func (c *Catalog) Size() (Size, error) {
	s := c.now.Load()
	if s == nil {
		return Size{}, ErrEmpty
	}
	all, probed := s.index.Cells()
	return Size{s.generation.Doc.Generation, s.index.Len(), all, probed}, nil
}

// Nearest is the nearest nodes, the nearest first, by a generation's embeddings.
type Nearest struct {
	Generation int64
	Neighbours []nearest.Neighbour
}

// ByID returns the k nodes nearest to a node.
func (c *Catalog) ByID(id string, k int) (Nearest, error) {
	s := c.now.Load()
	if s == nil {
		return Nearest{}, ErrEmpty
	}
	v := make([]float32, s.index.Dim())
	if !s.index.Vector(id, v) {
		if s.hasNoText(id) {
			return Nearest{}, fmt.Errorf("node %q: %w", id, ErrNoText)
		}
		return Nearest{}, unknown(id)
	}
	return s.nearest(v, k, id), nil
}

// hasNoText says whether a node exists and has no embedding.
func (s *state) hasNoText(id string) bool {
	_, ok := (*s.noText.Load())[id]
	return ok
}

func unknown(id string) error {
	return fmt.Errorf("%w: %q; ids are compared byte by byte", ErrUnknown, id)
}

// ByText returns the k nodes nearest to a text, as if it were a new node's.
func (c *Catalog) ByText(text string, k int) (Nearest, error) {
	s := c.now.Load()
	if s == nil {
		return Nearest{}, ErrEmpty
	}
	records, err := s.generation.EmbedTexts([]string{text})
	if err != nil {
		return Nearest{}, err
	}
	if len(records[0].Vector) == 0 {
		return Nearest{}, ErrNoText
	}
	return s.nearest(records[0].Vector, k, ""), nil
}

func (s *state) nearest(v []float32, k int, except string) Nearest {
	return Nearest{s.generation.Doc.Generation, s.index.Search(v, k, except)}
}

// Embed returns the embeddings of texts, and the generation that made them. A text that has nothing that the encoder
// knows has no vector.
func (c *Catalog) Embed(texts []string) (vectors [][]float32, dims int, number int64, err error) {
	s := c.now.Load()
	if s == nil {
		return nil, 0, 0, ErrEmpty
	}
	for part := range slices.Chunk(texts, batch) {
		records, err := s.generation.EmbedTexts(part)
		if err != nil {
			return nil, 0, 0, err
		}
		for _, r := range records {
			vectors = append(vectors, r.Vector)
		}
	}
	return vectors, s.index.Dim(), s.generation.Doc.Generation, nil
}
