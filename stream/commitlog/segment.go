package commitlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"giantstream/internal/parallel"
	"giantstream/sink"
	"giantstream/sink/rows"
)

// Row is a committed row and the manifest that committed it.
type Row = rows.Committed

// Segment is a stretch of the commit log: one manifest, or a merged block of manifests.
type Segment struct {
	// From and To are the first and the last manifest of the stretch.
	From, To int64
	// Merged: the segment is a block. Rows that a later manifest of the block supersedes are gone.
	Merged bool
	// Next is Manifest.BrokerOffsets of manifest To; nil where the log was merged or folded.
	Next map[string]int64

	horizon rows.Horizon      // of orders, as of manifest To
	windows []compactedWindow // table by table, newest first
	objects []Object          // table by table
	after   int64             // rows of manifests up to here are left out
}

// segment is the stretch of the log that one manifest is.
func (m *Manifest) segment() *Segment {
	return &Segment{From: m.Seq, To: m.Seq, Next: m.BrokerOffsets(), horizon: m.OrderHorizon, objects: m.Objects,
		windows: windowsOf(m.Seq, m.Objects), after: m.Seq - 1}
}

// segment is the stretch of the log that one window of a folded block is.
func (w foldedWindow) segment() *Segment {
	return &Segment{From: w.Seq, To: w.Seq, objects: w.Objects, windows: windowsOf(w.Seq, w.Objects)}
}

// windowsOf counts the rows of one window, by table.
func windowsOf(seq int64, objects []Object) (windows []compactedWindow) {
	for _, o := range objects {
		if last := len(windows) - 1; last >= 0 && windows[last].Table == o.Table {
			windows[last].Rows += o.Rows
		} else {
			windows = append(windows, compactedWindow{Table: o.Table, Seq: seq, Rows: o.Rows})
		}
	}
	return windows
}

// Segments yields the commit log of a shard from the manifest after `after` up to `to`, oldest
// first: merged blocks where they fit, manifests elsewhere. With to = 0 it goes up to the newest.
//
// Each node's rows come in the order in which they were committed. Of several rows of a node in one
// block, only the newest comes. The first segment may begin before the range; its rows do not.
func Segments(ctx context.Context, store sink.Store, shard int, after, to int64) iter.Seq2[*Segment, error] {
	return func(yield func(*Segment, error) bool) {
		newest := to == 0
		r := segmentReader{ctx: ctx, store: store, shard: shard, after: after, yield: yield}
		for {
			if newest {
				head, err := headAfter(ctx, store, shard, r.after)
				if err != nil {
					yield(nil, err)
					return
				}
				to = head
			}
			err := r.cover(compactionLevels, r.after+1, to)
			if newest && errors.Is(err, ErrRemoved) {
				continue // the log was folded beyond what was its head
			}
			if err != nil && !errors.Is(err, errStopped) {
				yield(nil, err)
			}
			return
		}
	}
}

// errStopped ends a walk whose consumer wants no more.
var errStopped = errors.New("stopped")

type segmentReader struct {
	ctx   context.Context
	store sink.Store
	shard int
	yield func(*Segment, error) bool
	// after is the last manifest that was yielded, or is not wanted.
	after int64
	// boundary is that of the log as far as the reader has met it.
	boundary int64
	// strict: the reader wants manifests, and no blocks in their place.
	strict bool
	// known, if not nil, returns a manifest that need not be read, as in Tail.
	known func(seq int64) *Manifest
}

func (r *segmentReader) give(s *Segment) error {
	s.after = r.after
	if !r.yield(s, nil) {
		return errStopped
	}
	r.after = s.To
	return nil
}

// cover yields the manifests from `from` to `to` in blocks of the given level and, where there is
// none, in blocks of the levels below.
func (r *segmentReader) cover(level int, from, to int64) error {
	if from > to {
		return nil
	}
	if level == 0 {
		return r.manifests(from, to)
	}
	if last := to / blockSize(level) * blockSize(level); last < from {
		return r.cover(level-1, from, to) // no block of this level ends in the range
	}
	for start, err := range compactions(r.ctx, r.store, r.shard, level, blockStart(level, from)) {
		if err != nil {
			return err
		}
		if start+blockSize(level)-1 > to {
			break
		}
		c, err := readCompaction(r.ctx, r.store, r.shard, level, start)
		if errors.Is(err, ErrDamaged) {
			continue // its parts have the same rows, if they are still there
		}
		if err != nil {
			return err
		}
		if c.Skipped {
			continue
		}
		if err := r.cover(level-1, from, start-1); err != nil {
			return err
		}
		if err := r.give(c.segment()); err != nil {
			return err
		}
		from = c.To + 1
	}
	return r.cover(level-1, from, to)
}

// manifests yields the manifests from `from` to `to`, where no merged block fits.
func (r *segmentReader) manifests(from, to int64) error {
	var prev *Manifest
	for from <= to {
		if from <= r.boundary {
			next, err := r.folded(from, to)
			if err != nil {
				return err
			}
			from = next
			continue
		}
		var few []*Manifest
		few, err := r.few(from, min(to, from+compactionFanIn-1), prev)
		// What was read counts only if the boundary is below it now.
		b, berr := ReadBoundary(r.ctx, r.store, r.shard)
		switch {
		case berr != nil:
			return berr
		case b.Seq >= from && r.strict:
			return b.removed(r.shard, from)
		case b.Seq >= from:
			r.boundary = b.Seq
			return r.cover(compactionLevels, from, to) // from here on in the blocks that took their place
		case err != nil:
			return err
		}
		for _, m := range few {
			if err := r.give(m.segment()); err != nil {
				return err
			}
		}
		prev = few[len(few)-1]
		from = prev.Seq + 1
	}
	return nil
}

// manifestsAtATime is how many manifests a walk through a log reads at the same time. An object store answers each
// after tens of milliseconds, and a log has hundreds that are not merged yet.
const manifestsAtATime = 8

// few reads some manifests, of which the first follows prev if that is not nil.
func (r *segmentReader) few(from, to int64, prev *Manifest) ([]*Manifest, error) {
	few := make([]*Manifest, to-from+1)
	failed := make([]error, len(few))
	workers := manifestsAtATime
	if r.strict {
		workers = 1 // a compactor, which has time, and knows most of them
	}
	parallel.ForEach(len(few), 1, workers, func(_, _, i, _ int) {
		few[i], failed[i] = r.read(from + int64(i))
	})
	for i, m := range few {
		err := failed[i]
		if errors.Is(err, sink.ErrNotFound) {
			err = fmt.Errorf("%w: shard %d has no manifest %d: %w", ErrDamaged, r.shard, from+int64(i), err)
		}
		if err == nil && prev != nil {
			err = m.follows(prev)
		}
		if err != nil {
			return nil, err
		}
		prev = m
	}
	return few, nil
}

// read returns a manifest.
func (r *segmentReader) read(seq int64) (*Manifest, error) {
	if r.known != nil {
		if m := r.known(seq); m != nil {
			return m, nil
		}
	}
	return ReadManifest(r.ctx, r.store, r.shard, seq)
}

// folded yields what a folded block says of the manifests from `from` to `to`, and returns the manifest after it.
func (r *segmentReader) folded(from, to int64) (next int64, err error) {
	start := blockStart(1, from)
	last := start + compactionFanIn - 1
	doc, err := readFolded(r.ctx, r.store, r.shard, start)
	switch {
	case errors.Is(err, sink.ErrNotFound) && last > to:
		return 0, fmt.Errorf("%w: the block of manifests %d to %d is merged, and a cut at manifest %d was not kept "+
			"(compaction.history says how long cuts can be read that no generation has)", ErrRemoved, start, last, to)
	case errors.Is(err, sink.ErrNotFound):
		return 0, fmt.Errorf("%w: manifests %d to %d of shard %d were removed, and their merged block %s is missing "+
			"or damaged", ErrDamaged, start, last, r.shard, compactionKey(r.shard, 1, start))
	case err != nil:
		return 0, err
	}
	for _, w := range doc.Windows {
		if w.Seq < from || w.Seq > to {
			continue
		}
		s := w.segment()
		s.From, s.horizon = r.after+1, doc.horizonAt(w.Seq) // windows before it have no rows
		if err := r.give(s); err != nil {
			return 0, err
		}
	}
	if end := min(last, to); r.after < end {
		if err := r.give(&Segment{From: r.after + 1, To: end, horizon: doc.horizonAt(end)}); err != nil {
			return 0, err
		}
	}
	return last + 1, nil
}

// Rows yields the segment's rows of nodes, newest window first, within a window in ascending order of node
// id.
func (s *Segment) Rows(ctx context.Context, store sink.Store, opts rows.ReadOptions) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for row, err := range rowsOf(ctx, store, rows.Nodes, s, opts) {
			if !yield(Row{Row: row.row, Seq: row.seq}, err) {
				return
			}
		}
	}
}

// Attributes yields the segment's rows of attributes that changed alone, in the order of Rows.
func (s *Segment) Attributes(ctx context.Context, store sink.Store) iter.Seq2[AttributesRow, error] {
	return func(yield func(AttributesRow, error) bool) {
		for row, err := range rowsOf(ctx, store, rows.NodeAttributes, s, rows.ReadOptions{}) {
			if !yield(AttributesRow{row.row, row.seq}, err) {
				return
			}
		}
	}
}

// Orders yields the segment's rows of orders, in the order of Rows, without what has expired by the Horizon of a block.
func (s *Segment) Orders(ctx context.Context, store sink.Store) iter.Seq2[rows.Order, error] {
	return func(yield func(rows.Order, error) bool) {
		for row, err := range rowsOf(ctx, store, rows.Orders, s, rows.ReadOptions{}) {
			if !yield(row.row, err) {
				return
			}
		}
	}
}

// Vectors yields the segment's rows of vectors, in the order of Rows.
func (s *Segment) Vectors(ctx context.Context, store sink.Store) iter.Seq2[VectorsRow, error] {
	return func(yield func(VectorsRow, error) bool) {
		for row, err := range rowsOf(ctx, store, rows.NodeVectors, s, rows.ReadOptions{}) {
			if !yield(vectorsRow(row), err) {
				return
			}
		}
	}
}

// Horizon says which orders count no more as of manifest To, by this shard.
func (s *Segment) Horizon() rows.Horizon { return s.horizon }

// AttributesRow is a row of attributes that changed alone, and the manifest that committed it.
type AttributesRow struct {
	rows.Attributes
	Seq int64
}

// committed is a row of any table, and the manifest that committed it.
type committed[R any] struct {
	row R
	seq int64
}

// rowsOf yields a segment's rows of one table, newest window first, within a window in ascending order of key.
func rowsOf[R any](ctx context.Context, store sink.Store, t *rows.Table[R], s *Segment, opts rows.ReadOptions) (
	all iter.Seq2[committed[R], error]) {
	return func(yield func(committed[R], error) bool) {
		objects, windows := s.table(t.Name)
		left := int64(0)
		if len(windows) > 0 {
			left = windows[0].Rows
		}
		for _, o := range objects {
			n := int64(0)
			for row, err := range t.Read(ctx, store, o.Ref(), opts) {
				if err == nil && len(windows) == 0 {
					err = rowsMissing(o, o.Rows+1)
				}
				if err != nil {
					yield(committed[R]{}, s.explain(err))
					return
				}
				seq := windows[0].Seq
				if seq <= s.after || !yield(committed[R]{row, seq}, nil) {
					return
				}
				n++
				if left--; left == 0 {
					if windows = windows[1:]; len(windows) > 0 {
						left = windows[0].Rows
					}
				}
			}
			if n != o.Rows {
				yield(committed[R]{}, rowsMissing(o, n))
				return
			}
		}
	}
}

// table returns what the segment has of one table.
func (s *Segment) table(name string) (objects []Object, windows []compactedWindow) {
	for _, o := range s.objects {
		if o.Table == name {
			objects = append(objects, o)
		}
	}
	for _, w := range s.windows {
		if w.Table == name {
			windows = append(windows, w)
		}
	}
	return objects, windows
}

// explain adds to "not found" its likely cause.
func (s *Segment) explain(err error) error {
	if errors.Is(err, sink.ErrNotFound) {
		return fmt.Errorf("rows of manifests %d to %d: %w "+
			"(a cut in the midst of a merged block can be read until compaction.grace is over; "+
			"'giantstream verify' says whether a merged block is damaged)",
			s.From, s.To, err)
	}
	return err
}

// rowsMissing is the error for an object that is not the one that its manifest names.
func rowsMissing(o Object, n int64) error {
	return fmt.Errorf("%w: %s has %d rows, its manifest says %d", ErrDamaged, o.Key, n, o.Rows)
}
