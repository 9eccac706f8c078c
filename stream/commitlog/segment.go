package commitlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"giantstream/sink"
	"giantstream/sink/rows"
)

// Segment is a stretch of the commit log: one manifest, or a merged block of manifests.
type Segment struct {
	// From and To are the first and the last manifest of the stretch.
	From, To int64
	// Merged: the segment is a block. Rows that a later manifest of the block supersedes are gone.
	Merged bool

	windows []compactedWindow // newest first
	objects []Object
	after   int64 // rows of manifests up to here are left out
}

// Segments yields the commit log of a shard from the manifest after `after` up to `to`, oldest
// first: merged blocks where they fit, manifests elsewhere. With to = 0 it goes up to the newest.
//
// Each node's rows come in the order in which they were committed. Of several rows of a node in one
// block, only the newest comes. The first segment may begin before the range; its rows do not.
func Segments(ctx context.Context, store sink.Store, shard int, after, to int64) iter.Seq2[*Segment, error] {
	return func(yield func(*Segment, error) bool) {
		if to == 0 {
			head, err := headAfter(ctx, store, shard, after)
			if err != nil {
				yield(nil, err)
				return
			}
			to = head
		}
		r := segmentReader{ctx: ctx, store: store, shard: shard, after: after, yield: yield}
		if err := r.cover(compactionLevels, after+1, to); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped ends a walk whose consumer wants no more.
var errStopped = errors.New("stopped")

type segmentReader struct {
	ctx   context.Context
	store sink.Store
	shard int
	after int64
	yield func(*Segment, error) bool
}

func (r *segmentReader) give(s *Segment) error {
	if s.after = r.after; !r.yield(s, nil) {
		return errStopped
	}
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
		merged := &Segment{From: c.From, To: c.To, Merged: true, windows: c.Windows, objects: c.Objects}
		if err := r.give(merged); err != nil {
			return err
		}
		from = c.To + 1
	}
	return r.cover(level-1, from, to)
}

func (r *segmentReader) manifests(from, to int64) error {
	last := from - 1
	for m, err := range Manifests(r.ctx, r.store, r.shard, from-1) {
		if err != nil {
			return err
		}
		s := &Segment{From: m.Seq, To: m.Seq, objects: m.Objects}
		if m.Rows > 0 {
			s.windows = []compactedWindow{{Seq: m.Seq, Rows: m.Rows}}
		}
		if err := r.give(s); err != nil {
			return err
		}
		if last = m.Seq; last == to {
			return nil
		}
	}
	return fmt.Errorf("%w: manifest %d is wanted, the log ends at %d", ErrDamaged, to, last)
}

// Rows yields the segment's rows, newest window first, within a window in ascending order of node
// id.
func (s *Segment) Rows(ctx context.Context, store sink.Store, opts rows.ReadOptions) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		windows, left := s.windows, int64(0)
		if len(windows) > 0 {
			left = windows[0].Rows
		}
		for _, o := range s.objects {
			n := int64(0)
			for row, err := range rows.Read(ctx, store, o.Ref(), opts) {
				if err == nil && len(windows) == 0 {
					err = rowsMissing(o, o.Rows+1)
				}
				if err != nil {
					yield(Row{}, s.explain(err))
					return
				}
				seq := windows[0].Seq
				if seq <= s.after || !yield(Row{Row: row, Seq: seq}, nil) {
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
				yield(Row{}, rowsMissing(o, n))
				return
			}
		}
	}
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
