package shard

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

// Errors that callers of a Shard test. After any error a Shard does nothing more. Close it and open
// it again; it resumes from the commit log.
var (
	// ErrFenced: another worker has committed to this shard and owns it now. Nothing is lost, and
	// this worker must not write again.
	ErrFenced = errors.New("shard is owned by another worker")
	// ErrLogIncomplete: the input topics no longer hold the records that the state needs.
	ErrLogIncomplete = errors.New("input topics do not hold what the commit log covers")
	// ErrStateDamaged: the files of the local state are not what the engine wrote. The state has been
	// set aside, and the next opening builds it again from a checkpoint or from the topics.
	ErrStateDamaged = engine.ErrDamaged
	// ErrDiskFull: there is not enough space for the local state. The state is whole.
	ErrDiskFull = engine.ErrDiskFull
	// ErrStateInUse: another process, or another shard of this one, has the state directory open.
	ErrStateInUse = engine.ErrInUse
)

// Shard is the worker of one partition of the graph. It applies mutations to the state, gathers
// their changes in windows, and commits each window to the object store exactly once. It is not
// safe for concurrent use.
type Shard struct {
	opts  Options
	state *state
	// head is the newest manifest, nil before the first.
	head *commitlog.Manifest
	// covered holds the head's offsets at the time of opening. Records below them are in committed
	// rows already.
	covered map[string]int64
	// position holds the offsets up to which this Shard itself has consumed.
	position map[string]int64
	// resume holds the offsets up to which every topic must be consumed before anything may be
	// committed: what the head covers, and what the state holds.
	resume map[string]int64
	window openWindow
	// inputs are the topics that are read, as the next manifest names them.
	inputs map[string]commitlog.Input
	// unsaved: a manifest is due, even if it has no rows and no new offsets, because of what it
	// says about inputs or losses.
	unsaved bool
	// committing is how long the last commit took.
	committing time.Duration
	loaded     time.Time // when a load had caught up; zero before
	opened     bool      // the inputs were compared with those of the head
	checked    time.Time // when checkInputs was last called
	session    string    // unique to this opening
	objects    int64     // objects written in this session
	failed     error     // what ended this Shard

	checkpoints *checkpointer
}

// Open reads the head of the shard's commit log, opens the local state, and brings the two
// together.
func Open(ctx context.Context, opts Options) (*Shard, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	var random [6]byte
	if _, err := io.ReadFull(opts.Rand, random[:]); err != nil {
		return nil, fmt.Errorf("draw a session id: %w", err)
	}
	// Listed before the head is read, so that none of them stands beyond it.
	checkpoints, err := checkpoint.Numbers(ctx, opts.Store, opts.Shard)
	if err != nil {
		return nil, err
	}
	head, err := commitlog.Head(ctx, opts.Store, opts.Shard)
	if err != nil {
		return nil, fmt.Errorf("find where shard %d stands: %w", opts.Shard, err)
	}
	st, err := opts.openOrReplaceState(ctx, meta{
		Pipeline: opts.Pipeline, Shard: opts.Shard, Shards: opts.Shards, Undirected: opts.Mirror != nil,
	})
	if err != nil {
		return nil, err
	}
	if st, err = restore(ctx, opts, st, head, checkpoints); err != nil {
		return nil, err
	}
	s := &Shard{opts: opts, state: st, head: head, session: hex.EncodeToString(random[:])}
	s.checkpoints = newCheckpointer(opts, s.session)
	s.checkpoints.intact = st.intact
	if err := st.guard.Run(ctx, s.reconcile); err != nil {
		return nil, errors.Join(err, s.closeState())
	}
	return s, nil
}

func (s *Shard) headSeq() int64 {
	if s.head == nil {
		return 0
	}
	return s.head.Seq
}

// reconcile decides which dirty marks in the state count, and where to read on. See
// docs/PROTOCOL.md, "Restart".
func (s *Shard) reconcile(ctx context.Context) error {
	if err := s.checkLineage(ctx); err != nil {
		return err
	}
	s.covered, s.position, s.resume = map[string]int64{}, map[string]int64{}, map[string]int64{}
	writer := ""
	if s.head != nil {
		s.covered, writer = s.head.Next, s.head.Writer
	}
	maps.Copy(s.resume, s.covered)
	ahead := false // does the state hold records that no manifest covers?
	for topic, applied := range s.state.meta.Applied {
		ahead = ahead || applied > s.covered[topic]
		s.resume[topic] = max(s.resume[topic], applied)
		if next, ok := s.covered[topic]; ok {
			s.position[topic] = min(applied, next)
		}
	}
	if err := s.openInputs(ctx); err != nil {
		return err
	}
	seq := s.headSeq()
	if !ahead {
		if err := s.state.dropMarks(); err != nil {
			return err
		}
	} else if s.state.meta.Committed < seq {
		if err := s.state.promoteMarks(seq + 1); err != nil {
			return err
		}
	}
	if err := s.state.commitWindow(seq, writer); err != nil {
		return err
	}
	return s.beginWindow()
}

// checkLineage refuses a state that was built beside another commit log.
func (s *Shard) checkLineage(ctx context.Context) error {
	have := s.state.meta
	if have.Committed == 0 {
		return nil
	}
	hint := fmt.Sprintf("point to the right store, or delete %s to rebuild the state from the input topics", s.opts.Dir)
	if have.Committed > s.headSeq() {
		return fmt.Errorf("state of shard %d %w: it has seen manifest %d, but the commit log in %s ends at %d; %s",
			s.opts.Shard, commitlog.ErrIdentity, have.Committed, s.opts.Store.URL(), s.headSeq(), hint)
	}
	writer, err := s.opts.writerOf(ctx, s.head, have.Committed)
	if errors.Is(err, commitlog.ErrRemoved) {
		return fmt.Errorf("state of shard %d cannot be compared with the commit log, and no checkpoint takes its "+
			"place: %w; delete %s to rebuild the state from the input topics", s.opts.Shard, err, s.opts.Dir)
	}
	if err != nil {
		return err
	}
	if writer != have.Writer {
		return fmt.Errorf("state of shard %d %w: manifest %d in %s was written by %q, the state knows it from %q; %s",
			s.opts.Shard, commitlog.ErrIdentity, have.Committed, s.opts.Store.URL(), writer, have.Writer, hint)
	}
	return nil
}

// writerOf returns the writer of manifest seq, which is not beyond head.
func (o *Options) writerOf(ctx context.Context, head *commitlog.Manifest, seq int64) (string, error) {
	if seq == head.Seq {
		return head.Writer, nil
	}
	m, err := commitlog.ReadCommitted(ctx, o.Store, o.Shard, seq)
	if err != nil {
		return "", err
	}
	return m.Writer, nil
}

func (s *Shard) beginWindow() error {
	s.state.pending.spilled, s.state.pending.dropped = true, true
	n, err := s.state.countMarks(s.headSeq() + 1)
	if err != nil {
		return err
	}
	s.window = openWindow{seq: s.headSeq() + 1, dirty: n}
	if n > 0 || s.unsaved {
		s.window.since = s.opts.Clock()
	}
	return nil
}

// Next returns, for each topic, the offset at which the feed must start. A missing topic starts at
// its first offset.
func (s *Shard) Next() map[string]int64 { return maps.Clone(s.position) }

// below reports whether some topic has yet to be consumed up to the offsets given.
func (s *Shard) below(offsets map[string]int64) bool {
	for topic, offset := range offsets {
		if s.position[topic] < offset {
			return true
		}
	}
	return false
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

func (s *Shard) moves(next map[string]int64) bool {
	for topic, offset := range next {
		if have, ok := s.position[topic]; !ok || offset > have {
			return true
		}
	}
	return false
}

func (s *Shard) apply(ctx context.Context, batch mutation.Batch) error {
	if err := s.state.checkSpace(stateReserveBytes); err != nil {
		return err
	}
	if err := s.state.ready(); err != nil {
		return err
	}
	c := &change{known: &s.state.pending, window: s.window.seq, mirror: s.opts.Mirror, eager: s.below(s.covered),
		room: min(len(batch.Mutations), mirrorChunk)}
	for i := range batch.Mutations {
		m := &batch.Mutations[i]
		c.covered = s.isCovered(m, batch.Next)
		if err := c.apply(ctx, m); err != nil {
			return err
		}
	}
	if err := c.sendMirror(ctx); err != nil {
		return err
	}
	if c.superseded > 0 {
		s.opts.Listener.Superseded(c.superseded)
	}
	meta := &s.state.meta
	meta.Nodes += c.nodes
	meta.Edges += c.edges
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

// isCovered reports whether a mutation's record lies below the offsets of the manifest that was the
// head when the shard was opened. Mirrored assertions carry the offset of the original record, so
// the offset of their batch decides; a batch across the boundary counts as new, which writes some
// rows again.
func (s *Shard) isCovered(m *mutation.Mutation, next map[string]int64) bool {
	t := s.opts.Topics
	switch {
	case m.Op == mutation.MirrorPut || m.Op == mutation.MirrorDelete:
		offset, ok := next[t.Mirror]
		return ok && offset <= s.covered[t.Mirror]
	case m.Version.Rank == 0:
		return m.Version.Offset < s.covered[t.Nodes]
	}
	return m.Version.Offset < s.covered[t.Edges]
}

// Close closes the state. Records that are not committed are read again next time.
func (s *Shard) Close() error {
	if s.failed == nil {
		s.failed = errors.New("shard is closed")
	}
	s.checkpoints.stop()
	return s.closeState()
}
