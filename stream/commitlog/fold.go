package commitlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/sink"
	"giantstream/stream/commitlog/checkpoint"
)

// FoldOptions say what Fold must leave.
type FoldOptions struct {
	// Keep is the oldest cut of the shard that a generation has: cuts from there on stay readable. With 0, before the
	// first generation, nothing is folded, as the first one may be at any cut.
	Keep int64
	// History is how long manifests stay at least, by the clocks of their writers.
	History time.Duration
	// Blocks bounds the blocks of 64 manifests that one call folds; 0 means 1,024.
	Blocks int
}

// defaultFoldBlocks is 18 hours of windows of a second.
const defaultFoldBlocks = 1024

// Fold moves the boundary of the shard's log as far as the options and the readers allow, and removes the manifests
// behind it. It may run at any time, in any process; a call that was interrupted is completed by the next.
//
// The boundary does not reach the head, nor the manifest of a checkpoint that is kept, nor a block without a document.
// It stays where it is without a checkpoint, without a generation, on a store without compare-and-swap, and while the
// head is of a format whose readers do not know boundaries.
func (c *Compactor) Fold(ctx context.Context, o FoldOptions) (removed Removed, err error) {
	if o.Blocks <= 0 {
		o.Blocks = defaultFoldBlocks
	}
	b, err := ReadBoundary(ctx, c.opts.Store, c.opts.Shard)
	if err != nil {
		return removed, err
	}
	to, err := c.foldable(ctx, b, o)
	if err == nil && to != nil {
		switch err = b.move(ctx, c.opts.Store, *to); {
		case err == nil:
			b = *to
		case errors.Is(err, sink.ErrChanged), errors.Is(err, sink.ErrUnsupported):
			err = nil // another process was faster; or a boundary cannot be moved here
		}
	}
	if err == nil {
		err = c.removeManifests(ctx, b.Seq, &removed)
	}
	if err != nil {
		return removed, fmt.Errorf("fold the log of shard %d: %w", c.opts.Shard, err)
	}
	return removed, nil
}

// foldable returns where the boundary may go, nil if it stays. It has seen to it that every block up to there has a
// document.
func (c *Compactor) foldable(ctx context.Context, b Boundary, o FoldOptions) (*Boundary, error) {
	last, err := c.foldLimit(ctx, b, o)
	if err != nil {
		return nil, err
	}
	var to *Boundary
	for n := range int64(o.Blocks) {
		from := blockStart(1, b.Seq+1) + n*compactionFanIn
		end := from + compactionFanIn - 1
		if end > last {
			break
		}
		m, err := ReadCommitted(ctx, c.opts.Store, c.opts.Shard, end)
		if errors.Is(err, ErrRemoved) {
			return nil, nil // another process folds the log
		}
		if err != nil {
			return nil, err
		}
		if c.opts.Clock().Sub(m.Created) < o.History {
			break
		}
		there, err := c.documented(ctx, from)
		if err != nil {
			return nil, err
		}
		if !there {
			break
		}
		to = &Boundary{Shard: c.opts.Shard, Seq: end, Digest: m.Digest(), Committed: m.Committed,
			Moved: c.opts.Clock().UTC()}
	}
	return to, nil
}

// foldLimit returns the newest manifest that nobody needs by its number.
func (c *Compactor) foldLimit(ctx context.Context, b Boundary, o FoldOptions) (int64, error) {
	seq, err := headAfter(ctx, c.opts.Store, c.opts.Shard, b.Seq)
	if err != nil || seq <= b.Seq+compactionFanIn {
		return 0, err
	}
	head, err := ReadManifest(ctx, c.opts.Store, c.opts.Shard, seq)
	if errors.Is(err, sink.ErrNotFound) || err == nil && head.Format < boundaryManifestFormat {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	last := min(seq-1, o.Keep)
	kept, _, err := checkpoint.Kept(ctx, c.opts.Store, c.opts.Shard)
	if errors.Is(err, checkpoint.ErrBad) || err == nil && len(kept) == 0 {
		return 0, nil // a state that is older than the boundary could not be compared with the log
	}
	for _, checkpoint := range kept {
		last = min(last, checkpoint.Seq-1)
	}
	return last, err
}

// documented sees to it that a block of level 1 has a document that replaces its manifests, and reports whether it
// has.
func (c *Compactor) documented(ctx context.Context, from int64) (bool, error) {
	store, shard := c.opts.Store, c.opts.Shard
	merged, err := readCompaction(ctx, store, shard, 1, from)
	switch {
	case errors.Is(err, sink.ErrNotFound), errors.Is(err, ErrDamaged):
		return false, nil
	case err != nil:
		return false, err
	case !merged.Skipped:
		return true, nil
	}
	if _, err := readFolded(ctx, store, shard, from); err == nil {
		return true, nil
	} else if !errors.Is(err, sink.ErrNotFound) {
		return false, err
	}
	f := &folded{Shard: shard, From: from, To: merged.To}
	r := segmentReader{ctx: ctx, store: store, shard: shard, after: from - 1, strict: true,
		yield: func(s *Segment, _ error) bool { f.add(s); return true }}
	if err := r.manifests(from, merged.To); err != nil {
		return false, err
	}
	return true, f.create(ctx, store)
}

// removeManifests removes the manifests up to seq, and what late workers have left under their numbers.
func (c *Compactor) removeManifests(ctx context.Context, seq int64, removed *Removed) error {
	if seq == 0 {
		return nil
	}
	for info, err := range c.opts.Store.List(ctx, manifestPrefix(c.opts.Shard), "") {
		if err != nil {
			return err
		}
		number, err := manifestSeq(c.opts.Shard, info.Key)
		if err != nil {
			continue // nobody's
		}
		if number > seq {
			return nil
		}
		if err := removed.object(ctx, c.opts.Store, info); err != nil {
			return err
		}
	}
	return nil
}
