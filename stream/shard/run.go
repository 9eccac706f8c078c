package shard

import (
	"context"
	"fmt"
	"maps"
	"time"

	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/mutation"
)

// Feed is where a shard's mutations come from.
type Feed interface {
	// Next returns the next batch, or an empty one if nothing came within wait. Within a topic,
	// records come in offset order.
	Next(ctx context.Context, wait time.Duration) (mutation.Batch, error)
}

// Run applies the batches of the feed, which must start at Next, and commits windows as they fill
// up. It returns when the context ends, when another worker has taken over (ErrFenced), or on
// another error; never nil.
func (s *Shard) Run(ctx context.Context, feed Feed) error {
	s.committed = s.opts.Clock()
	for {
		if s.opts.Bounds != nil {
			s.opts.Window = s.opts.Bounds()
		}
		batch, err := feed.Next(ctx, s.wait())
		if err != nil {
			return s.unreadable(ctx, err)
		}
		if err := s.checkInputsIfDue(ctx); err != nil {
			return err
		}
		idle := batch.CaughtUp && len(batch.Mutations) == 0 && !s.moves(batch.Next)
		if err := s.Apply(ctx, batch); err != nil {
			return err
		}
		if idle && s.below(s.resume) {
			return s.incomplete()
		}
		drain := batch.CaughtUp && s.opts.Drain != nil && s.opts.Drain()
		if s.opts.Load {
			if drain && s.loaded.IsZero() {
				s.loaded = s.opts.Clock()
			}
			drain = drain && idle // the other shards send mirror records until they are idle, too
		}
		if drain || s.full() {
			began := s.opts.Clock()
			if _, err := s.Commit(ctx); err != nil {
				return err
			}
			s.committed = s.opts.Clock()
			s.committing = s.committed.Sub(began)
		}
		s.checkpointIfDue(drain)
	}
}

// loading reports whether the shard gathers the first load of a graph in one window.
func (s *Shard) loading() bool { return s.opts.Load && s.head == nil }

// full reports whether the window must end. That of a load may last as long as any other from the
// moment when the shard has caught up.
func (s *Shard) full() bool {
	now := s.opts.Clock()
	if s.loading() {
		return !s.loaded.IsZero() && now.Sub(s.loaded) >= s.opts.Window.Time
	}
	return s.window.full(s.opts.Window) || !s.window.since.IsZero() && !now.Before(s.due()) ||
		s.state.pending.overHalf()
}

// linger bounds how long a window waits for more when the last commit was long ago.
const linger = 100 * time.Millisecond

// due is when the open window must end: the commits of a shard are windowTime apart, but a change that comes after a
// longer pause waits only for what comes with it.
func (s *Shard) due() time.Time {
	gathered := s.window.since.Add(min(s.windowTime()/10, linger))
	if apart := s.committed.Add(s.windowTime()); apart.After(gathered) {
		return apart
	}
	return gathered
}

// longest is how many times Window.Time commits may be apart for that.
const longest = 10

// windowTime is how far commits are apart: Window.Time, or as long as the last one took if that is more. A worker that
// cannot keep up would otherwise commit most of the time, and write the same rows again and again.
func (s *Shard) windowTime() time.Duration {
	return max(s.opts.Window.Time, min(s.committing, longest*s.opts.Window.Time))
}

const (
	// drainWait is how long a draining shard waits for more.
	drainWait = 50 * time.Millisecond
	// idleWait is how long any other shard waits for more, before it looks whether it is to drain.
	idleWait = 200 * time.Millisecond
)

// wait is how long the feed may wait for records: until the window's time is over.
func (s *Shard) wait() time.Duration {
	wait := s.opts.Window.Time
	switch {
	case s.opts.Drain == nil:
	case s.opts.Drain():
		// Only the next batch, even an empty one, says that the feed has caught up.
		wait = min(wait, drainWait)
	default:
		wait = min(wait, idleWait)
	}
	if s.window.since.IsZero() || s.below(s.resume) || s.loading() {
		return wait
	}
	return max(min(s.due().Sub(s.opts.Clock()), wait), time.Millisecond)
}

// incomplete returns why the shard cannot get to where it may commit.
func (s *Shard) incomplete() error {
	for topic, next := range s.resume {
		if have := s.position[topic]; have < next {
			s.failed = fmt.Errorf("%w: %s was read to its end at offset %d, the shard was at %d before; "+
				"restore the topic, or start a new pipeline and backfill it",
				ErrLogIncomplete, topic, have, next)
		}
	}
	return s.failed
}

// Apply applies a batch to the state. After an error the next opening finds nothing of it.
func (s *Shard) Apply(ctx context.Context, batch mutation.Batch) error {
	if s.failed != nil {
		return s.failed
	}
	if len(batch.Mutations) == 0 && !s.moves(batch.Next) && s.state.guard.Failure() == nil {
		return nil
	}
	for _, l := range batch.Lost {
		s.lose(l.Topic, l.From, l.To)
	}
	ctx, done := s.opts.Listener.Step(ctx, "apply")
	err := s.state.guard.Run(ctx, func(ctx context.Context) error { return s.apply(ctx, batch) })
	done(err)
	if err != nil {
		s.failed = fmt.Errorf("apply: %w", err)
		return s.failed
	}
	return nil
}

func (s *Shard) apply(ctx context.Context, batch mutation.Batch) error {
	if err := s.state.checkSpace(stateReserveBytes); err != nil {
		return err
	}
	if err := s.state.ready(); err != nil {
		return err
	}
	c := &change{known: &s.state.pending, window: s.window.seq, mirror: s.opts.Mirror, eager: s.below(s.covered),
		plain: s.state.meta.PlainLinks,
		room:  min(len(batch.Mutations), mirrorChunk), orderClock: s.orderClock(), vectors: vectorCounts{}}
	counts, err := s.applyStatements(ctx, c, &batch)
	if err == nil {
		err = c.sendMirror(ctx)
	}
	if err != nil {
		return err
	}
	if c.full != "" {
		s.opts.Log.Warn("an order has as many items as are kept of one, and further ones are left out; does the field "+
			"of the order's id (ingest.baskets.id) tell orders apart?", "order", c.full, "items", maxOrderLines)
	}
	s.account(counts)
	meta := &s.state.meta
	meta.Nodes += c.nodes
	meta.Edges += c.edges
	meta.Orders += c.orders
	meta.Lines += c.lines
	meta.Vectors.addAll(c.vectors)
	meta.PlainLinks = c.plain
	meta.OrderClock, meta.OrderHorizon = c.newest, c.orderHorizon
	for topic, next := range batch.Next {
		meta.Applied[topic] = max(meta.Applied[topic], next)
		s.position[topic] = max(s.position[topic], next)
	}
	s.consumed(batch.Last)
	s.window.dirty += c.dirty
	s.window.bytes += batch.Bytes
	if s.window.since.IsZero() {
		s.window.since = s.opts.Clock()
	}
	// Once everything that the head covers is applied, it is written: no commit will do so.
	if s.state.pending.overLimit() || c.eager && !s.below(s.covered) {
		return s.state.spill(s.window.seq)
	}
	return nil
}

// atHead reports whether the state is exactly what the head manifest covers, with no row due.
func (s *Shard) atHead() bool {
	if s.failed != nil || s.head == nil || s.window.dirty > 0 || s.below(s.resume) || s.advanced() {
		return false
	}
	for topic, applied := range s.state.meta.Applied {
		if applied > s.head.Next[topic] {
			return false
		}
	}
	return true
}

// checkpointIfDue begins a checkpoint if one is due or a drained input has ended, unless an attempt
// is running. It takes a snapshot of the state and uploads it in the background.
// A failed attempt is logged, and the next turn tries again.
func (s *Shard) checkpointIfDue(drained bool) {
	c := s.checkpoints
	if s.opts.CheckpointEvery <= 0 || s.headSeq() <= c.attempted || c.busy() || !s.atHead() {
		return
	}
	if !drained && c.clock().Sub(c.since) < s.opts.CheckpointEvery {
		return
	}
	c.attempted, c.since = s.headSeq(), c.clock()
	doc, err := s.snapshot(context.Background())
	if err != nil {
		c.report(doc, 0, err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.running = cancel, make(chan struct{})
	go func(running chan struct{}) {
		defer close(running)
		defer cancel()
		uploaded, err := c.upload(ctx, s.opts.Dir+snapshotSuffix, doc)
		c.report(doc, uploaded, err)
	}(c.running)
}

// Checkpoint makes a checkpoint of the state now and waits for it. It is for a clean stop; Run
// makes checkpoints every CheckpointEvery. If there is one already, or the shard does not stand at
// its head manifest, Checkpoint does nothing, and the next opening starts from an older one.
func (s *Shard) Checkpoint(ctx context.Context) error {
	c := s.checkpoints
	if err := c.wait(ctx); err != nil {
		return err
	}
	if !s.atHead() || c.done >= s.headSeq() {
		return nil
	}
	c.attempted, c.since = s.headSeq(), c.clock()
	var uploaded int64
	doc, err := s.snapshot(ctx)
	if err == nil {
		uploaded, err = c.upload(ctx, s.opts.Dir+snapshotSuffix, doc)
	}
	c.notify(uploaded, err)
	if err != nil {
		return fmt.Errorf("checkpoint of the state of shard %d: %w", s.opts.Shard, err)
	}
	return nil
}

// snapshot copies the state on the local disk, mostly by hard links, and returns the document for
// it without files and number.
func (s *Shard) snapshot(ctx context.Context) (*checkpoint.Document, error) {
	m := s.state.meta
	doc := &checkpoint.Document{State: stateFormat, Shard: s.opts.Shard, Seq: s.head.Seq, Writer: s.head.Writer,
		Applied: maps.Clone(m.Applied), Nodes: m.Nodes, Edges: m.Edges, Created: s.opts.Clock().UTC()}
	return doc, s.state.guard.Run(ctx, func(context.Context) error {
		return s.state.snapshot(s.opts.Dir+snapshotSuffix, s.window.seq)
	})
}
