package commitlog

import (
	"context"
	"errors"
	"fmt"

	"giantstream/sink"
)

// A witness is an object that was written after a manifest was committed, and names it. A log that
// ends before such a manifest has lost its end: nobody removes manifests beyond the boundary.
type witness struct {
	key string
	seq int64
}

// lastWitness returns the witness of the newest manifest: the newest checkpoint, the cursor of the
// embeddings, a merged block, or the boundary. Whoever compares it with the head of the log must ask for the
// witness first. A damaged witness counts for nothing.
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
	checkpoint, err := NewestCheckpoint(ctx, store, shard)
	if err != nil {
		return last, err
	}
	if checkpoint != nil {
		see(checkpointKey(shard, checkpoint.Number), checkpoint.Seq)
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
	there, err := exists(ctx, store, ManifestKey(shard, w.seq))
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
	return fmt.Errorf("%w: shard %d has lost the end of its log: the log ends at manifest %d, but %s was written "+
		"after manifest %d. Restore the manifests from %s on from a backup of the store. To go on after manifest %d "+
		"without them, stop the pipeline, remove %s, whatever the next start names, and the local state of the shard; "+
		"the topics must hold all records from the offsets of manifest %d on", ErrDamaged, shard, head, w.key, w.seq,
		ManifestKey(shard, head+1), head, w.key, head)
}

// CheckLog returns ErrDamaged if the log of the cursor's shard has lost the manifest that the cursor
// stands at. It needs one request.
func (c *Cursor) CheckLog(ctx context.Context) error {
	return witness{c.key, c.Seq}.check(ctx, c.store, c.shard)
}
