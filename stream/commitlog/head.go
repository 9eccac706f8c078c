package commitlog

import (
	"context"
	"errors"
	"fmt"

	"giantstream/sink"
	"giantstream/stream/commitlog/checkpoint"
)

// Head returns the newest manifest of a shard, or nil if there is none; ErrDamaged if the log has a
// gap or has lost its end. It needs O(log n) requests for a log of n manifests.
func Head(ctx context.Context, store sink.Store, shard int) (*Manifest, error) {
	for {
		seq, err := headSeq(ctx, store, shard)
		if err != nil || seq == 0 {
			return nil, err
		}
		m, err := ReadCommitted(ctx, store, shard, seq)
		if !errors.Is(err, ErrRemoved) { // or else it was the head until a moment ago
			return m, err
		}
	}
}

// Next returns the manifest after the given one, nil if there is none yet; ErrRemoved if that manifest lies behind the
// boundary, then Head has the newest one. It needs two requests.
func Next(ctx context.Context, store sink.Store, shard int, after int64) (*Manifest, error) {
	m, err := ReadCommitted(ctx, store, shard, after+1)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, nil
	}
	return m, err
}

// headSeq finds the newest sequence number, 0 for none. The error is ErrDamaged if manifests follow a gap, or
// if another object names a later one: a writer that continued before them would write a second history.
func headSeq(ctx context.Context, store sink.Store, shard int) (int64, error) {
	for {
		before, err := ReadBoundary(ctx, store, shard)
		if err != nil {
			return 0, err
		}
		head, err := headBehind(ctx, store, shard, before)
		// What the search took for the end or for a gap may have been a removal.
		after, berr := ReadBoundary(ctx, store, shard)
		if berr != nil {
			return 0, berr
		}
		if after.Seq == before.Seq {
			return head, err
		}
	}
}

// headBehind is headSeq while the boundary does not move.
func headBehind(ctx context.Context, store sink.Store, shard int, b Boundary) (int64, error) {
	known, err := lastWitness(ctx, store, shard, b)
	if err != nil {
		return 0, err
	}
	if err := known.check(ctx, store, shard); err != nil {
		return 0, err
	}
	head, err := gallop(ctx, store, shard, known.seq)
	if err != nil {
		return 0, err
	}
	for info, err := range store.List(ctx, manifestPrefix(shard), ManifestKey(shard, head)) {
		if err != nil {
			return 0, fmt.Errorf("list the commit log of shard %d: %w", shard, err)
		}
		seq, err := manifestSeq(shard, info.Key)
		if err != nil {
			return 0, err
		}
		if seq == head+1 { // another process has committed since
			if head, err = gallop(ctx, store, shard, seq); err != nil {
				return 0, err
			}
			continue
		}
		if seq > head {
			return 0, gap(shard, head+1, seq)
		}
	}
	return head, nil
}

// A witness is an object that was written after a manifest was committed, and names it. A log that
// ends before such a manifest has lost its end: nobody removes manifests beyond the boundary.
type witness struct {
	key string
	seq int64
}

// lastWitness returns the witness of the newest manifest: the newest checkpoint, the cursor of the
// embeddings, a merged block, or the boundary. A caller that compares it with the head of the log must
// read the witness first. A damaged witness counts for nothing.
func lastWitness(ctx context.Context, store sink.Store, shard int, b Boundary) (last witness, err error) {
	see := func(key string, seq int64) {
		if seq > last.seq {
			last = witness{key, seq}
		}
	}
	if b.Seq > 0 {
		see(boundaryKey(shard), b.Seq+1)
	}
	cursor, err := LoadPublished(ctx, store, shard)
	if err != nil {
		return last, err
	}
	see(publishedKey(shard), cursor.Seq)
	document, err := checkpoint.Newest(ctx, store, shard)
	if err != nil {
		return last, err
	}
	if document != nil {
		see(checkpoint.Key(shard, document.Number), document.Seq)
	}
	// The largest blocks come first, so that few of the smaller ones are listed.
	for level := compactionLevels; level >= 1; level-- {
		newest := int64(0)
		for from, err := range compactions(ctx, store, shard, level, blockStart(level, last.seq+1)) {
			if err != nil {
				return last, err
			}
			newest = from
		}
		if newest == 0 {
			continue
		}
		_, err := readCompaction(ctx, store, shard, level, newest)
		switch {
		case err == nil:
			see(compactionKey(shard, level, newest), newest+blockSize(level)-1)
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, sink.ErrNotFound):
			return last, err
		}
	}
	return last, nil
}

// check returns ErrDamaged if the manifest that the witness names is gone and was not removed on purpose. It needs one
// request where the manifest is there.
func (w witness) check(ctx context.Context, store sink.Store, shard int) error {
	if w.seq == 0 {
		return nil
	}
	there, err := sink.Exists(ctx, store, ManifestKey(shard, w.seq))
	if err != nil || there {
		return err
	}
	b, err := ReadBoundary(ctx, store, shard)
	if err != nil || w.seq <= b.Seq {
		return err
	}
	head, err := headAfter(ctx, store, shard, b.Seq)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: shard %d has lost the end of its log: it ends at manifest %d, and %s was written after "+
		"manifest %d. Restore all from %s on from a backup (docs/OPERATIONS.md, \"The store is damaged\")", ErrDamaged,
		shard, head, w.key, w.seq, ManifestKey(shard, head+1))
}

// CheckLog returns ErrDamaged if the log of the cursor's shard has lost the manifest that the cursor
// stands at. It needs one request.
func (c *Cursor) CheckLog(ctx context.Context) error {
	return witness{c.key, c.Seq}.check(ctx, c.store, c.shard)
}
