package shard

import (
	"context"
	"errors"
	"iter"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/groupcommit"
)

// Rows of a window that share an object with those of other shards. A larger window has objects of its own.
const (
	sharedRows  = 5_000
	sharedBytes = 2 << 20
)

// commitWithOthers commits the window in a manifest that other shards of the process share. If another worker has ended
// the session, because it has taken over one of them, the shard goes on in the next one.
func (s *Shard) commitWithOthers(ctx context.Context) (*commitlog.Manifest, error) {
	for {
		var m *commitlog.Manifest
		t, err := s.member.Begin(ctx, s.head)
		if err == nil {
			m, err = s.commitTicket(ctx, t)
		}
		if !errors.Is(err, groupcommit.ErrSealed) {
			return m, s.fenced(err)
		}
		s.opts.Log.Info("another worker has taken over a shard of this session; going on in another session")
	}
}

func (s *Shard) commitTicket(ctx context.Context, t *groupcommit.Ticket) (*commitlog.Manifest, error) {
	defer t.Abandon() // without an effect once it is submitted
	s.head = t.Head()
	m := s.manifest()
	small, rest, stop := s.sharedRows(m)
	defer stop()
	var err error
	if rest != nil {
		err = s.writeRows(ctx, m, t.RowKey, rest)
	}
	if err == nil {
		err = s.closeInputs(ctx)
	}
	if err == nil {
		ctx, done := s.step(ctx, "manifest") // shared rows and the wait for other shards included
		err = t.Commit(ctx, m, small)
		done(err)
	}
	return m, err
}

// sharedRows returns the window's rows, if they are few; or else a sequence of them, which ends with stop.
func (s *Shard) sharedRows(m *commitlog.Manifest) (few []rows.Row, all iter.Seq2[rows.Row, error], stop func()) {
	if s.window.dirty == 0 {
		return nil, nil, func() {}
	}
	next, stop := iter.Pull2(s.featurized(m))
	size := 0
	row, err, ok := next()
	for ; ok && err == nil && len(few) < sharedRows && size < sharedBytes; row, err, ok = next() {
		few = append(few, row)
		size += int(commitlog.RowBytes(&row))
	}
	if !ok {
		return few, nil, stop
	}
	return nil, func(yield func(rows.Row, error) bool) {
		for _, row := range few {
			if !yield(row, nil) {
				return
			}
		}
		for ; ok; row, err, ok = next() {
			if !yield(row, err) {
				return
			}
		}
	}, stop
}
