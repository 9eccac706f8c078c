package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"giantstream/sink"
	"giantstream/sink/rows"
)

// maxObjectBytes splits a window's rows into objects by their size in memory.
const maxObjectBytes = 128 << 20

// commitTries bounds how often a manifest whose fate is unknown is tried
// again before the shard gives up and leaves it to its next opening.
const commitTries = 6

// Commit closes the open window: it writes the rows of all marked nodes, then
// the manifest that commits them along with the offsets consumed. It returns
// nil when there is nothing to commit, or not yet (see doc.go, "Restart").
func (s *Shard) Commit(ctx context.Context) (*Manifest, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	if s.below(s.resume) || s.window.dirty == 0 && !s.advanced() {
		return nil, nil
	}
	m, err := s.commit(ctx)
	if err != nil {
		s.failed = fmt.Errorf("shard %d: commit window %d: %w", s.opts.Shard, s.window.seq, err)
		return nil, s.failed
	}
	if s.opts.OnCommit != nil {
		s.opts.OnCommit(m)
	}
	return m, nil
}

// advanced says whether offsets moved since the head manifest.
func (s *Shard) advanced() bool {
	for topic, next := range s.position {
		if s.head == nil || next > s.head.Next[topic] {
			return true
		}
	}
	return false
}

// commit follows the protocol of doc.go. The order of its steps is the point.
func (s *Shard) commit(ctx context.Context) (*Manifest, error) {
	m := &Manifest{
		Format: ManifestFormat, Shard: s.opts.Shard, Seq: s.window.seq,
		Writer: s.opts.Writer + "-" + s.session,
		Next:   s.nextOffsets(),
		Nodes:  s.state.meta.Nodes, Edges: s.state.meta.Edges,
		Created: s.opts.Clock().UTC(),
	}
	if s.head != nil {
		m.Generation = s.head.Generation
	}
	if err := s.writeRows(ctx, m); err != nil {
		return nil, err
	}
	if s.opts.Mirror != nil {
		if err := s.opts.Mirror.Flush(ctx); err != nil {
			return nil, fmt.Errorf("flush the mirror: %w", err)
		}
	}
	if err := s.create(ctx, m); err != nil {
		return nil, err
	}
	// Committed, whatever happens from here on.
	if err := s.state.settle(m.Seq, m.Writer); err != nil {
		return nil, fmt.Errorf("manifest is written, but: %w", err)
	}
	if err := s.state.flushIfDue(s.opts.Clock()); err != nil {
		return nil, fmt.Errorf("manifest is written, but: %w", err)
	}
	s.head = m
	s.window = openWindow{seq: m.Seq + 1}
	s.opts.Log.Debug("window committed", "seq", m.Seq, "rows", m.Rows, "objects", len(m.Objects))
	return m, nil
}

// nextOffsets never lets a topic's offset decrease (apache/iceberg #17340).
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

// create makes the manifest, the moment of truth. An error other than
// ErrExists leaves open whether it exists; trying again tells, because Create
// takes an object that holds exactly our bytes, session id included, for
// success, and anything else for ErrExists.
func (s *Shard) create(ctx context.Context, m *Manifest) error {
	if err := m.check(); err != nil {
		return err
	}
	data, err := m.encode()
	if err != nil {
		return err
	}
	key := ManifestKey(m.Shard, m.Seq)
	pause := s.opts.backoff
	for try := 1; ; try++ {
		err := s.opts.Store.Create(ctx, key, data)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, sink.ErrExists):
			return fmt.Errorf("%w: %w", ErrFenced, err)
		case try == commitTries || ctx.Err() != nil:
			return fmt.Errorf("the manifest may or may not have been written: %w", err)
		}
		s.opts.Log.Warn("manifest not confirmed, trying again", "seq", m.Seq, "try", try, "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("the manifest may or may not have been written: %w", err)
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// writeRows writes the window's rows, split into objects, and lists them in m.
func (s *Shard) writeRows(ctx context.Context, m *Manifest) (err error) {
	if s.window.dirty == 0 {
		return nil
	}
	key := func() string {
		s.objects++
		return rowKey(m.Shard, m.Seq, s.session, s.objects-1)
	}
	m.Objects, m.Rows, err = writeObjects(ctx, s.opts.Store, key, s.opts.MaxObjectRows,
		rows.WriteOptions{Compression: s.opts.Compression}, s.featurized(m))
	return err
}

// writeObjects writes rows into as many objects as they need.
func writeObjects(ctx context.Context, store sink.Store, key func() string, maxRows int64, opts rows.WriteOptions,
	in iter.Seq2[rows.Row, error]) (objects []ManifestObject, total int64, err error) {
	next, stop := iter.Pull2(in)
	defer stop()
	row, err, ok := next()
	for ok {
		var size, count int64
		chunk := func(yield func(rows.Row, error) bool) {
			for ok && count < maxRows && size < maxObjectBytes {
				count++
				size += rowBytes(&row)
				if !yield(row, err) {
					return
				}
				row, err, ok = next()
			}
		}
		key := key()
		info, err := rows.WriteWith(ctx, store, key, opts, chunk)
		if err != nil {
			return nil, 0, err
		}
		objects = append(objects, ManifestObject{Key: key, Rows: info.Rows, Bytes: info.Bytes, CRC32C: info.CRC32C})
		total += info.Rows
	}
	return objects, total, nil
}

// featurized yields the window's rows with features and targets, and notes
// the newest generation among them.
func (s *Shard) featurized(m *Manifest) iter.Seq2[rows.Row, error] {
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

// rowBytes estimates a row's size in memory.
func rowBytes(r *rows.Row) int64 {
	n := len(r.NodeID) + len(r.Text) + len(r.Class) + 8*len(r.FeatureIndices) + 64
	for _, l := range r.Labels {
		n += len(l) + 16
	}
	return int64(n)
}
