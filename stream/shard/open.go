package shard

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"

	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard/engine"
)

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
	s.resumeCounts()
	if err := s.openInputs(ctx); err != nil {
		return err
	}
	s.openOrders()
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
	hint := fmt.Sprintf("point to the right store; if this one was restored from a backup, delete %s, and the state "+
		"is built again", s.opts.Dir)
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

// Close closes the state. Records that are not committed are read again next time.
func (s *Shard) Close() error {
	if s.failed == nil {
		s.failed = errors.New("shard is closed")
	}
	s.checkpoints.stop()
	return s.closeState()
}

// openOrReplaceState opens the state of the shard. Instead of a damaged one it opens a new one.
func (o *Options) openOrReplaceState(ctx context.Context, want meta) (*state, error) {
	st, err := o.openState(ctx, o.Dir, want)
	if errors.Is(err, engine.ErrDamaged) {
		if err := o.setAside(err); err != nil {
			return nil, err
		}
		st, err = o.openState(ctx, o.Dir, want)
	}
	return st, err
}

// closeState closes the state and, if it is damaged, sets it aside.
func (s *Shard) closeState() error {
	if err := s.state.close(); err != nil {
		return fmt.Errorf("close the state of shard %d: %w", s.opts.Shard, err)
	}
	if reason := s.state.guard.Failure(); errors.Is(reason, engine.ErrDamaged) {
		return s.opts.setAside(reason)
	}
	return nil
}

func (o *Options) setAside(reason error) error {
	to, err := engine.SetAside(o.fs, o.Dir)
	if err != nil {
		return fmt.Errorf("state of shard %d in %s: %w (%w); remove the directory", o.Shard, o.Dir, err, reason)
	}
	o.Log.Warn("local state is damaged and was set aside; "+
		"it is built again from the newest checkpoint or from the topics, and nothing is lost",
		"moved_to", to, "reason", reason)
	o.Listener.SetAside(to, reason)
	return nil
}
