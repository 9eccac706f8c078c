package shard

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard/engine"
)

// RekeyOptions of Rekey.
type RekeyOptions struct {
	Pipeline   string // Identity.Name of the new shards
	Undirected bool
	// From are the state directories of all old shards, by number. Each state stands at its shard's head, and no
	// other process has it open. They belong to the pipeline FromPipeline.
	From         []string
	FromPipeline string
	// Dir gets the states of the new shards, a directory each.
	Dir    string
	Shards int
	// Partition returns the shard of a node among the given number of shards.
	Partition func(id []byte, shards int) int
	// Forget are nodes of which no fact is taken over: neither theirs, nor that others have had links to them, nor
	// that they were in an order.
	Forget map[string]bool
	Cache  *Cache // shared by all states; nil for one of their own
	Log    *slog.Logger
}

// ErrLive: a node that is to be forgotten was not deleted, or a link leads to it.
var ErrLive = errors.New("it or a link to it is not deleted")

// Rekeyed are the states of the new shards of a pipeline, made of the states of its old ones.
type Rekeyed struct {
	opts   RekeyOptions
	each   Options // of every new shard, but for its number
	states []*state
	// dropped counts the live edges that were forgotten: of nodes that are deleted or were never stated, and the
	// orders and lines of orders.
	dropped counts
}

// rekeyBatch is the size of the writes to each new state.
const rekeyBatch = 1 << 20

// Rekey gives each fact of the old states to the new shard of its node. Facts keep their versions. Close the
// result.
func Rekey(ctx context.Context, o RekeyOptions) (_ *Rekeyed, err error) {
	r := &Rekeyed{opts: o}
	// One old state is open at a time, and all new ones are.
	r.each = Options{Cache: o.Cache, Log: o.Log, Clock: time.Now, Rand: rand.Reader, fs: vfs.Default,
		grace: engine.Grace, transfers: defaultTransfers, Listener: NopListener{}}
	if r.each.Log == nil {
		r.each.Log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	for q := range o.Shards {
		st, err := r.each.openState(ctx, r.dir(q), meta{Pipeline: o.Pipeline, Shard: q, Shards: o.Shards,
			Undirected: o.Undirected})
		if err != nil {
			return nil, err
		}
		r.states = append(r.states, st)
		if st.meta.Committed > 0 || st.meta.Nodes > 0 {
			return nil, fmt.Errorf("state of new shard %d in %s is not empty", q, r.dir(q))
		}
	}
	for p, dir := range o.From {
		if err := r.add(ctx, p, dir); err != nil {
			return nil, fmt.Errorf("move the state of shard %d to new shards: %w", p, err)
		}
	}
	return r, nil
}

func (r *Rekeyed) dir(shard int) string { return filepath.Join(r.opts.Dir, strconv.Itoa(shard)) }

// add moves the facts of an old shard.
func (r *Rekeyed) add(ctx context.Context, shard int, dir string) (err error) {
	old, err := r.each.openState(ctx, dir, meta{Pipeline: r.opts.FromPipeline, Shard: shard, Shards: len(r.opts.From),
		Undirected: r.opts.Undirected})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.close()) }()
	for _, st := range r.states {
		m := &st.meta
		m.PlainLinks = m.PlainLinks && old.meta.PlainLinks
		m.OrderClock = max(m.OrderClock, old.meta.OrderClock)
		m.OrderHorizon = max(m.OrderHorizon, old.meta.OrderHorizon)
	}
	r.dropped = counts{vectors: vectorCounts{}}
	before := r.totals()
	if err := old.guard.Run(ctx, func(ctx context.Context) error { return r.copyFacts(ctx, old, shard) }); err != nil {
		return err
	}
	want := before.plus(countsOf(&old.meta))
	if have := r.totals().plus(r.dropped); !have.equal(want) {
		return fmt.Errorf("%w: with it there are %+v, and should be %+v", engine.ErrDamaged, have, want)
	}
	return nil
}

// counts are of live facts.
type counts struct {
	nodes, edges, orders, lines int64
	vectors                     vectorCounts
}

func countsOf(m *meta) counts { return counts{m.Nodes, m.Edges, m.Orders, m.Lines, m.Vectors} }

func (c counts) plus(d counts) counts {
	sum := counts{c.nodes + d.nodes, c.edges + d.edges, c.orders + d.orders, c.lines + d.lines, vectorCounts{}}
	sum.vectors.addAll(c.vectors)
	sum.vectors.addAll(d.vectors)
	return sum
}

func (c counts) equal(d counts) bool {
	return c.nodes == d.nodes && c.edges == d.edges && c.orders == d.orders && c.lines == d.lines &&
		maps.Equal(c.vectors, d.vectors)
}

func (r *Rekeyed) totals() (all counts) {
	for _, st := range r.states {
		all = all.plus(countsOf(&st.meta))
	}
	return all
}

func (r *Rekeyed) copyFacts(ctx context.Context, old *state, shard int) (err error) {
	batches := make([]*pebble.Batch, len(r.states))
	for q, st := range r.states {
		batches[q] = st.db.NewBatch()
	}
	defer func() {
		for _, b := range batches {
			err = errors.Join(err, b.Close())
		}
	}()
	flush := func(q int) error {
		st := r.states[q]
		err := setMeta(batches[q], &st.meta)
		if err == nil {
			err = batches[q].Commit(pebble.NoSync)
		}
		batches[q].Reset()
		return engine.Failure(err)
	}
	for _, space := range []byte{spaceHeader, spaceText, spaceAdjacency, spaceAttribute, spaceVectors, spaceOrder} {
		it, err := iterate(old.db, space)
		if err != nil {
			return engine.Failure(err)
		}
		for ok := it.First(); ok && err == nil; ok = it.Next() {
			err = ctx.Err()
			var q int
			if err == nil {
				q, err = r.copyFact(it, old, shard, batches)
			}
			if err == nil && batches[q].Len() >= rekeyBatch {
				if err = r.states[q].checkSpace(stateReserveBytes); err == nil {
					err = flush(q)
				}
			}
		}
		if err := errors.Join(err, engine.Failure(it.Error()), engine.Failure(it.Close())); err != nil {
			return err
		}
	}
	for q := range batches {
		if err := flush(q); err != nil {
			return err
		}
	}
	return nil
}

// copyFact copies what the iterator over an old state stands at to the batch of its new shard, which it returns.
func (r *Rekeyed) copyFact(it *pebble.Iterator, old *state, shard int, batches []*pebble.Batch) (q int, err error) {
	key := it.Key()
	value, err := it.ValueAndErr()
	if err != nil {
		return 0, engine.Failure(err)
	}
	id, err := partitionedBy(key)
	if err != nil {
		return 0, err
	}
	if p := r.opts.Partition(id, len(r.opts.From)); p != shard {
		return 0, fmt.Errorf("%w: it has node %q, which belongs to shard %d", engine.ErrDamaged, id, p)
	}
	q = r.opts.Partition(id, r.opts.Shards)
	if key[0] == spaceOrder {
		return q, r.copyOrder(batches[q], key, value, &r.states[q].meta)
	}
	for _, id := range IDsOf(key, value) {
		if r.opts.Forget[string(id)] {
			return q, r.drop(old, key, value, id)
		}
	}
	m := &r.states[q].meta
	switch key[0] {
	case spaceHeader:
		h, err := decodeHeader(value)
		if err != nil {
			return 0, err
		}
		if h.exists() {
			m.Nodes++
		}
	case spaceAdjacency:
		a, err := decodeAdjacency(value)
		if err != nil {
			return 0, err
		}
		if a.effective().live {
			m.Edges++
		}
	case spaceVectors:
		v, err := decodeVectors(value)
		if err != nil {
			return 0, err
		}
		m.Vectors.add(v.all, 1)
	}
	return q, engine.Failure(batches[q].Set(key, value, nil))
}

// partitionedBy is the id in a key whose hash decides the shard.
func partitionedBy(key []byte) ([]byte, error) {
	switch key[0] {
	case spaceAdjacency, spaceAttribute, spaceVectors:
		return ownerOf(key)
	case spaceOrder:
		k, err := orderOfKey(key)
		return []byte(k.id), err
	}
	return key[1:], nil
}

// copyOrder copies an order without its lines of nodes that are to be forgotten, and counts it in the meta of its new
// state.
func (r *Rekeyed) copyOrder(b *pebble.Batch, key, value []byte, to *meta) error {
	o, err := decodeOrder(value)
	if err != nil {
		return err
	}
	all := o.count()
	if n := len(o.lines); n > 0 {
		o.lines = slices.DeleteFunc(o.lines, func(l orderLine) bool { return r.opts.Forget[l.item] })
		if len(o.lines) < n {
			value = o.encode(nil)
		}
	}
	kept := o.count()
	to.Orders += int64(min(kept, 1))
	to.Lines += int64(kept)
	r.dropped.orders += int64(min(all, 1) - min(kept, 1))
	r.dropped.lines += int64(all - kept)
	return engine.Failure(b.Set(key, value, nil))
}

// drop leaves out a fact of a node that is to be forgotten. ErrLive if a row shows the fact.
func (r *Rekeyed) drop(old *state, key, value, forgotten []byte) error {
	shown := true
	switch key[0] {
	case spaceHeader:
		h, err := decodeHeader(value)
		if err != nil {
			return err
		}
		shown = h.exists()
	case spaceAdjacency:
		a, err := decodeAdjacency(value)
		if err != nil {
			return err
		}
		if a.effective().live {
			r.dropped.edges++
		}
		if shown = a.label(); shown {
			owner, err := ownerOf(key)
			if err != nil {
				return err
			}
			if shown, err = old.exists(owner); err != nil {
				return err
			}
		}
	case spaceVectors:
		v, err := decodeVectors(value)
		if err != nil {
			return err
		}
		r.dropped.vectors.add(v.all, 1)
		shown = false // if the node is, its header says so
	case spaceAttribute:
		shown = false
	}
	if shown {
		return fmt.Errorf("node %q cannot be forgotten: %w", forgotten, ErrLive)
	}
	return nil
}

// exists reports whether a node has a row that is not a deletion, as far as the state is written.
func (s *state) exists(id []byte) (bool, error) {
	value, release, err := s.db.Get(headerKey(nil, string(id)))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, engine.Failure(err)
	}
	h, err := decodeHeader(value)
	return err == nil && h.exists(), errors.Join(err, engine.Failure(release.Close()))
}

// ownerOf returns the owner in a key of a link, of attributes or of vectors: the inverse of ownerPrefix.
func ownerOf(key []byte) ([]byte, error) {
	var owner []byte
	for i := 1; i < len(key); i++ {
		if key[i] != 0 {
			owner = append(owner, key[i])
			continue
		}
		if i++; i < len(key) && key[i] == 1 {
			return owner, nil
		}
		if i == len(key) || key[i] != 0xFF {
			break
		}
		owner = append(owner, 0)
	}
	return nil, fmt.Errorf("%w: key %x has no owner", errCorruptState, key)
}

// Count enters into a manifest how many nodes, edges, orders, lines and vectors its new shard has, and the clock of its
// orders.
func (r *Rekeyed) Count(m *commitlog.Manifest) {
	c := countsOf(&r.states[m.Shard].meta)
	m.OrderClock = r.states[m.Shard].meta.OrderClock
	m.Nodes, m.Edges, m.Orders, m.Lines, m.Vectors = c.nodes, c.edges, c.orders, c.lines, maps.Clone(c.vectors)
}

// Checkpoint stores the state of a new shard as its first checkpoint, at the head of its commit log. The head must
// exist.
func (r *Rekeyed) Checkpoint(ctx context.Context, store sink.Store, head *commitlog.Manifest) error {
	st := r.states[head.Shard]
	st.meta.Applied, st.meta.Committed, st.meta.Writer = maps.Clone(head.Next), head.Seq, head.Writer
	o := r.each
	o.Store, o.Shard, o.Shards, o.Dir = store, head.Shard, r.opts.Shards, r.dir(head.Shard)
	var random [6]byte
	if _, err := io.ReadFull(o.Rand, random[:]); err != nil {
		return fmt.Errorf("draw a session id: %w", err)
	}
	c := newCheckpointer(o, hex.EncodeToString(random[:]))
	c.intact = st.intact
	doc := &checkpoint.Document{State: stateFormat, Shard: head.Shard, Seq: head.Seq, Writer: head.Writer,
		Applied: st.meta.Applied, Nodes: st.meta.Nodes, Edges: st.meta.Edges, Created: o.Clock().UTC()}
	err := st.guard.Run(ctx, func(context.Context) error { return st.snapshot(o.Dir+snapshotSuffix, 0) })
	if err == nil {
		_, err = c.upload(ctx, o.Dir+snapshotSuffix, doc)
	}
	if err != nil {
		return fmt.Errorf("first checkpoint of shard %d: %w", head.Shard, err)
	}
	return nil
}

// Close closes the states.
func (r *Rekeyed) Close() (err error) {
	for _, st := range r.states {
		err = errors.Join(err, st.close())
	}
	r.states = nil
	return err
}
