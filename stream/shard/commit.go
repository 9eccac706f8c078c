package shard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// Commit closes the open window: it writes the rows of all due nodes, and then the manifest that
// commits the rows and the offsets consumed. It returns nil if there is nothing to commit, or if
// the shard must first consume more (see docs/PROTOCOL.md, "Restart").
func (s *Shard) Commit(ctx context.Context) (*commitlog.Manifest, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	if s.below(s.resume) || s.window.dirty == 0 && !s.advanced() && !s.unsaved {
		return nil, nil
	}
	var m *commitlog.Manifest
	ctx, done := s.opts.Listener.Step(ctx, "commit")
	err := s.state.guard.Run(ctx, func(ctx context.Context) (err error) {
		m, err = s.commit(ctx)
		return err
	})
	defer func() { done(err) }() // after Committed, which knows the manifest
	if err != nil {
		s.failed = fmt.Errorf("commit window %d: %w", s.window.seq, err)
		return nil, s.failed
	}
	s.opts.Listener.Committed(m)
	return m, nil
}

// advanced reports whether records were consumed that the head manifest does not cover.
func (s *Shard) advanced() bool {
	for topic, next := range s.position {
		if s.head == nil || next > s.head.Next[topic] {
			return true
		}
	}
	return false
}

// commit follows docs/PROTOCOL.md, "Commit". The order of its steps is what makes it safe.
func (s *Shard) commit(ctx context.Context) (m *commitlog.Manifest, err error) {
	if err := s.state.checkSpace(stateReserveBytes); err != nil {
		return nil, err
	}
	gone, sweep, err := s.expireOrders()
	if err != nil {
		return nil, err
	}
	m = s.manifest()
	m.Orders, m.Lines = m.Orders+gone.orders, m.Lines+gone.lines
	if err := s.writeRows(ctx, m); err != nil {
		return nil, err
	}
	if err := s.closeInputs(ctx); err != nil {
		return nil, err
	}
	if err := s.createManifest(ctx, m); err != nil {
		return nil, err
	}
	s.state.meta.Lost = nil
	// From here on the window is committed, whatever happens.
	if err := s.state.commitWindow(m.Seq, m.Writer); err != nil {
		return nil, fmt.Errorf("manifest is written, but: %w", err)
	}
	if err := s.state.flushIfDue(s.opts.Clock()); err != nil {
		return nil, fmt.Errorf("manifest is written, but: %w", err)
	}
	s.head, s.unsaved, s.opts.Accept = m, false, Accept{}
	s.window = openWindow{seq: m.Seq + 1}
	if sweep {
		if err := s.sweep(); err != nil {
			return nil, fmt.Errorf("manifest is written, but: %w", err)
		}
	}
	s.opts.Log.Debug("window committed", "seq", m.Seq, "rows", m.Rows, "objects", len(m.Objects))
	return m, nil
}

// manifest returns that of the open window, without its rows.
func (s *Shard) manifest() *commitlog.Manifest {
	m := &commitlog.Manifest{
		Format: commitlog.ManifestFormat, Shard: s.opts.Shard, Seq: s.window.seq,
		Writer: s.opts.Writer + "-" + s.session,
		Next:   s.nextOffsets(),
		Inputs: maps.Clone(s.inputs), Lost: s.losses(), Counted: maps.Clone(s.state.meta.Counted),
		Nodes: s.state.meta.Nodes, Edges: s.state.meta.Edges,
		Orders: s.state.meta.Orders, Lines: s.state.meta.Lines, Vectors: maps.Clone(s.state.meta.Vectors),
		OrderClock: s.state.meta.OrderClock, OrderHorizon: s.state.meta.OrderHorizon,
		Created: s.opts.Clock().UTC(),
	}
	if s.head != nil {
		m.Generation = s.head.Generation
	}
	return m
}

// closeInputs makes the window's mirror durable, and sees to it that every record of the window came from the topics
// that the shard began to read: if the topics are the same ones now, they were all the time.
func (s *Shard) closeInputs(ctx context.Context) error {
	if s.opts.Mirror != nil {
		if err := s.opts.Mirror.Flush(ctx); err != nil {
			return fmt.Errorf("flush the mirror: %w", err)
		}
	}
	return s.checkInputs(ctx)
}

// createManifest commits the window. ErrFenced if another worker has committed its number.
func (s *Shard) createManifest(ctx context.Context, m *commitlog.Manifest) (err error) {
	ctx, done := s.opts.Listener.Step(ctx, "manifest")
	defer func() { done(err) }()
	m.Follow(s.head)
	creator := commitlog.Creator{Store: s.opts.Store, Backoff: s.opts.backoff, Log: s.opts.Log}
	if err = creator.Create(ctx, m); errors.Is(err, commitlog.ErrTaken) {
		err = fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// nextOffsets never lets a topic's offset decrease (the bug of apache/iceberg #17340).
func (s *Shard) nextOffsets() map[string]int64 {
	next := map[string]int64{}
	if s.head != nil {
		maps.Copy(next, s.head.Next)
	}
	for topic, offset := range s.position {
		next[topic] = max(next[topic], offset)
	}
	return next
}

// writeRows writes the window's rows and lists their objects in m.
func (s *Shard) writeRows(ctx context.Context, m *commitlog.Manifest) (err error) {
	if s.window.dirty == 0 {
		return nil
	}
	ctx, done := s.opts.Listener.Step(ctx, "rows")
	defer func() { done(err) }()
	key := func() string {
		s.objects++
		return commitlog.RowKey(m.Shard, m.Seq, s.session, s.objects-1)
	}
	opts := rows.WriteOptions{Compression: s.opts.Compression}
	m.Objects, m.Rows, err = commitlog.WriteObjects(ctx, s.opts.Store, rows.Nodes, key, s.opts.maxRows, opts,
		s.featurized(m))
	if err != nil {
		return err
	}
	err = s.state.eachMark(m.Seq, string(markAgain), func(string, *pendingNode) error { m.Again++; return nil })
	if err != nil {
		return err
	}
	attributes, _, err := commitlog.WriteObjects(ctx, s.opts.Store, rows.NodeAttributes, key, s.opts.maxRows, opts,
		s.state.attributeRows(m.Seq))
	if err != nil {
		return err
	}
	orders, _, err := commitlog.WriteObjects(ctx, s.opts.Store, rows.Orders, key, s.opts.maxRows, opts,
		s.state.orderRows(m.Seq))
	if err != nil {
		return err
	}
	vectors, _, err := commitlog.WriteObjects(ctx, s.opts.Store, rows.NodeVectors, key, s.opts.maxRows, opts,
		s.state.vectorRows(m.Seq))
	m.Objects = slices.Concat(m.Objects, attributes, orders, vectors)
	return err
}

// featurized yields the window's rows with features and targets, and notes the newest of their
// generations in m.
func (s *Shard) featurized(m *commitlog.Manifest) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for row, err := range s.state.rows(m.Seq) {
			if err == nil && !row.Deleted && s.opts.Featurizer != nil {
				if err = s.opts.Featurizer.Featurize(&row); err != nil {
					err = fmt.Errorf("featurize node %q: %w", row.NodeID, err)
				}
				m.Generation = max(m.Generation, row.Generation)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
