package ingesting

import (
	"context"
	"errors"
	"math"
	"time"

	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// Pauses between attempts to merge, and to remove what was merged. At a window a second the
// smallest block fills in about a minute.
const (
	compactInterval = time.Minute
	compactRemoval  = time.Hour
)

// compact merges a shard's rows in the background, and removes what was merged, until ctx ends. An
// error does not stop the shard.
func (in *Ingest) compact(ctx context.Context, shard int) error {
	if !in.Config.Compaction.Enabled {
		return nil
	}
	log := in.Log.With("shard", shard)
	c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: in.Store,
		Known: in.Heads.Known(shard), Grace: in.Config.Compaction.Grace, Log: in.Log})
	tick := time.NewTicker(compactInterval)
	defer tick.Stop()
	var removed time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		merged, err := c.Merge(ctx)
		if merged > 0 {
			log.Info("rows merged", "blocks", merged)
		}
		if err == nil && time.Since(removed) >= compactRemoval {
			removed = time.Now()
			err = in.removeMerged(ctx, c, shard)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("rows not merged; trying again later", "in", compactInterval, "error", err)
		}
	}
}

// removeMerged removes merged rows and manifests that no generation in the store needs.
func (in *Ingest) removeMerged(ctx context.Context, c *commitlog.Compactor, shard int) error {
	keep, err := in.oldestCut(ctx, shard)
	if err != nil {
		return err
	}
	removed, err := c.Remove(ctx, keep)
	if removed.Objects > 0 {
		in.Log.Info("merged rows removed", "shard", shard, "objects", removed.Objects, "bytes", removed.Bytes)
	}
	if err != nil || in.Config.Compaction.History == 0 {
		return err
	}
	removed, err = c.Fold(ctx, commitlog.FoldOptions{Keep: keep, History: in.Config.Compaction.History})
	if removed.Objects > 0 {
		in.Log.Info("manifests folded and removed", "shard", shard, "manifests", removed.Objects, "bytes", removed.Bytes)
	}
	return err
}

// oldestCut returns the oldest manifest of a shard in the cut of any generation, ready or being
// built; 0 before the first generation.
func (in *Ingest) oldestCut(ctx context.Context, shard int) (int64, error) {
	numbers, err := generation.Numbers(ctx, in.Store)
	if err != nil {
		return 0, err
	}
	oldest := int64(math.MaxInt64)
	for _, g := range numbers {
		doc, err := generation.Load(ctx, in.Store, g)
		switch {
		case errors.Is(err, generation.ErrNone):
			// Its build has not chosen a cut yet, or it has just been removed.
		case errors.Is(err, generation.ErrDamaged):
			return 0, nil // its cut is not known; it goes once a newer generation is ready
		case err != nil:
			return 0, err
		default:
			oldest = min(oldest, doc.Cut[shard])
		}
	}
	if oldest == math.MaxInt64 {
		return 0, nil
	}
	return oldest, nil
}
