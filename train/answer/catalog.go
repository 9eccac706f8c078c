// Package answer answers which nodes are nearest to a node or a text: from the embeddings of the generation being
// served, and what was committed after its cut. Handler answers over HTTP.
//
// A Catalog reads only the store, so any number of processes can answer, whatever else they do. Its answers are
// those of a consumer that holds the embeddings topic: the newest text of each node, encoded by the generation
// being served. The same store gives the same answers. With Options.FollowOrders, it is ahead of that consumer by what
// items were ordered with since the generation's cut.
package answer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/train/answer/filter"
	"giantstream/train/generation"
	"giantstream/train/nearest"
)

// batch is how many texts are encoded, and embeddings indexed, at a time.
const batch = 1024

// Log is the commit log as a Catalog follows it.
type Log interface {
	// Stretches yields what a shard has committed after manifest `after`, oldest first; nothing if there is nothing
	// newer. It ends at the manifest that was the newest at the call, or a later one.
	Stretches(ctx context.Context, shard int, after int64) iter.Seq2[Stretch, error]
	// Attributes is Stretches from the beginning, without texts.
	Attributes(ctx context.Context, shard int) iter.Seq2[Stretch, error]
	// Offsets returns what Stretch.Next is at a manifest, nil where that is not kept: the newest is.
	Offsets(ctx context.Context, shard int, seq int64) (map[string]int64, error)
}

// Stretch is a piece of the commit log that ends with manifest To. Each node has at most one row in it, and so has each
// order. Of a row, id, text, attributes and whether the node was deleted are read; its strings may be the reader's.
type Stretch struct {
	To   int64
	Rows iter.Seq2[Row, error]
	// Orders that have changed, and which of all orders count no more by manifest To.
	Orders  iter.Seq2[rows.Order, error]
	Horizon rows.Horizon
	// Vectors of nodes that have changed, nil for none: each node that has one has a row, too.
	Vectors iter.Seq2[rows.Vectors, error]
	// Next is, by input topic, the offset of the first record that manifest To does not cover, of the partition
	// numbered as the shard; nil if Log.Offsets has to be asked.
	Next map[string]int64
}

// Row is a row of a Stretch.
type Row struct {
	rows.Row
	// AttributesAlone: the row has the attributes of the node and nothing else.
	AttributesAlone bool
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
	// FollowOrders has what GoesWith answers from follow the orders, and the embeddings of items that are ordered. It
	// holds all orders in memory, and for the embeddings the texts in a temporary file.
	FollowOrders bool
	// Attributes that questions may ask for.
	Attributes []filter.Attribute
	// Texts has vectors of texts, nil for no such model.
	Texts *TextModel
	// Exact searches all embeddings for each question: for processes that answer few.
	Exact bool
	// Now is the clock by which SolveShare is kept, nil for the system's.
	Now func() time.Time
}

// Catalog is safe for concurrent use, but for Update, which one goroutine calls.
type Catalog struct {
	opts  Options
	now   atomic.Pointer[state]
	texts texts

	changed struct {
		sync.Mutex
		news chan struct{} // nil if nobody waits
	}
}

// state is the embeddings of one generation, brought up to the newest manifests.
type state struct {
	generation *generation.Following
	seq        []int64 // by shard: the newest manifest that is in the index
	drift      drift   // of what came after the generation's cut
	answers    bool    // questions have been answered; Update alone uses it
	view       string  // that a vector of a text is of, "" for none

	mu    sync.RWMutex   // of what follows: questions read it, and Update alone writes it
	index *nearest.Index // knows all nodes; those without text have no vector
	// next is, by shard, Stretch.Next as of seq; nil where it is not known.
	next []map[string]int64
	// attributes are those of the nodes by their handles in the index.
	attributes *filter.Table
	// complements are those of the orders, nil for none.
	complements *complements
	behaviour   *behaviour // nil if orders change no embedding
	beside      beside
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
	loads := s == nil || s.generation.Doc.Generation != g.Doc.Generation
	if loads {
		if s, err = c.load(ctx, g); err != nil {
			return false, fmt.Errorf("read the embeddings of generation %d: %w", g.Doc.Generation, err)
		}
	}
	if changed, err = c.follow(ctx, s); err != nil {
		return changed && !loads, err
	}
	// Changes after the cut come first, so that no answer goes back in time.
	s.answers = true
	c.now.Store(s)
	c.tell()
	clock := ambient.Clock(c.opts.Now)
	solved := s.complements.solve(clock, s.behaviour)
	if err := c.texts.update(ctx, c.opts.Log, s.seq); err != nil {
		return loads || changed || solved, fmt.Errorf("read the texts: %w", err)
	}
	return loads || changed || solved, c.encodeMoved(s, clock)
}

// load indexes a generation's own embeddings.
func (c *Catalog) load(ctx context.Context, g *generation.Generation) (*state, error) {
	s := &state{generation: g.Following(), index: nearest.New(dim(g)), seq: make([]int64, c.opts.Shards),
		next: make([]map[string]int64, c.opts.Shards), attributes: filter.NewTable(c.opts.Attributes)}
	s.view, s.beside.views = c.viewOf(s), s.generation.Views()
	var err error
	if s.complements, err = c.complementsOf(ctx, g.Doc); err != nil {
		return nil, err
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
		if err := c.loadAttributes(ctx, s, shard); err != nil {
			return nil, err
		}
	}
	s.complements.belongTo(s)
	s.behaviour = newBehaviour(s.generation, s.complements)
	return s, nil
}

// loadAttributes reads the attributes of the nodes of a shard, some of which may be newer than the cut: what comes
// after it is followed before the first question.
func (c *Catalog) loadAttributes(ctx context.Context, s *state, shard int) error {
	if s.attributes.Empty() {
		return nil
	}
	w := s.writer()
	for stretch, err := range c.opts.Log.Attributes(ctx, shard) {
		if err != nil {
			return err
		}
		for r, err := range stretch.Rows {
			if err == nil {
				err = w.addAttributes(r.NodeID, r.Attributes)
			}
			if err == nil {
				err = w.flushFull()
			}
			if err != nil {
				return err
			}
		}
	}
	return w.flush()
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
		next := s.next[shard]
		for stretch, err := range c.opts.Log.Stretches(ctx, shard, s.seq[shard]) {
			if err == nil {
				c.texts.takeAlong(shard, s.seq[shard], &stretch)
				err = s.follow(shard, &stretch)
			}
			if err != nil {
				s.know(shard, nil)
				return changed, err
			}
			changed, next = true, stretch.Next
		}
		if next == nil && s.seq[shard] > 0 {
			if next, err = c.opts.Log.Offsets(ctx, shard, s.seq[shard]); err != nil {
				return changed, err
			}
		}
		s.know(shard, next)
	}
	return changed, s.complements.expire()
}

// know notes up to which offsets a shard is read.
func (s *state) know(shard int, next map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[shard] = next
}

// follow adds a stretch.
func (s *state) follow(shard int, stretch *Stretch) error {
	if s.generation.TakesVectors() && stretch.Vectors != nil {
		for v, err := range stretch.Vectors {
			if err != nil {
				return err
			}
			s.followVectors(&v)
		}
	}
	w := s.writer()
	for r, err := range stretch.Rows {
		if err == nil {
			err = w.addRow(&r)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(w.flush(), s.complements.follow(shard, stretch)); err != nil {
		return err
	}
	s.seq[shard] = stretch.To
	return nil
}

// followVectors lets a node have other vectors. Once items are solved here, what they are ordered with is known better
// than the log has it.
func (s *state) followVectors(v *rows.Vectors) {
	b := s.behaviour
	if b == nil {
		s.generation.Follow(v)
		return
	}
	row, own, ok := s.generation.SaysOrdered(v)
	if !ok || !s.answers {
		s.generation.Follow(v)
	}
	if ok {
		b.log.note(v.NodeID, stated{row, own, v.EventTime})
	}
}

// writer brings records into the index, a batch at a time.
type writer struct {
	*state

	ids     []string
	vectors []float32

	textIDs []string // of texts to encode
	texts   []string

	attributeIDs []string
	rows         []filter.Row
}

func (s *state) writer() *writer { return &writer{state: s} }

// add adds an embedding. Its strings and vectors are of the reader, and kept as copies.
func (w *writer) add(r embedding.Record) error {
	if r.Deleted {
		w.remove(r.NodeID)
		return nil
	}
	w.take(strings.Clone(r.NodeID), r.Vector)
	return w.flushFull()
}

// take takes a vector, empty for a node without text.
func (w *writer) take(id string, vector []float32) {
	w.ids, w.vectors = append(w.ids, id), append(w.vectors, vector...)
	if len(vector) == 0 {
		w.vectors = append(w.vectors, make([]float32, w.index.Dim())...)
	}
}

// flushFull flushes what has become a batch.
func (w *writer) flushFull() error {
	if max(len(w.ids), len(w.texts), len(w.rows)) < batch {
		return nil
	}
	return w.flush()
}

func (w *writer) remove(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h, known := w.index.Handle(id); known {
		w.attributes.Clear(h)
		w.index.Remove(id)
		w.complements.noteNode(id)
		w.behaviour.noteNode(id)
	}
}

// addRow adds a node by its text, or what has changed of it.
func (w *writer) addRow(r *Row) error {
	if r.Deleted {
		w.drift.compare(w.vector(r.NodeID), nil)
		w.remove(r.NodeID)
		return nil
	}
	if !r.AttributesAlone {
		w.textIDs, w.texts = append(w.textIDs, strings.Clone(r.NodeID)), append(w.texts, strings.Clone(r.Text))
	}
	if err := w.addAttributes(r.NodeID, r.Attributes); err != nil {
		return err
	}
	return w.flushFull()
}

// addAttributes replaces the attributes of a node. Those of a node that the index does not know are dropped.
func (w *writer) addAttributes(id, attributes string) error {
	if w.attributes.Empty() {
		return nil
	}
	row, err := w.attributes.Decode(attributes)
	if err != nil {
		return fmt.Errorf("attributes of node %q: %w", id, err)
	}
	w.attributeIDs, w.rows = append(w.attributeIDs, strings.Clone(id)), append(w.rows, row)
	return nil
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
		for i, r := range records {
			w.drift.compare(w.vector(w.textIDs[i]), r.Vector)
			w.take(w.textIDs[i], r.Vector)
		}
		w.textIDs, w.texts = nil, nil
	}
	change, err := w.index.Prepare(w.ids, w.vectors)
	if err != nil {
		return err
	}
	var come []string
	for _, id := range w.ids {
		if _, known := w.index.Handle(id); !known {
			w.complements.noteNode(id)
			come = append(come, id)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index.Apply(change)
	for _, id := range come {
		w.behaviour.noteNode(id)
	}
	for _, id := range w.ids {
		if h, known := w.index.Handle(id); known {
			w.beside.set(h, id)
		}
	}
	for i, id := range w.attributeIDs {
		if h, known := w.index.Handle(id); known {
			w.attributes.Set(h, w.rows[i])
		}
	}
	w.ids, w.vectors, w.attributeIDs, w.rows = nil, w.vectors[:0], nil, nil
	return nil
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
	s.mu.RLock()
	defer s.mu.RUnlock()
	all, probed := s.index.Cells()
	return Size{s.generation.Doc.Generation, s.index.Len(), all, probed}, nil
}
