// Package upkeep keeps the commit logs of shards small: it merges rows, and removes what was merged and what no
// manifest names.
package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/service/heads"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// Upkeep works beside the shards that this process streams.
type Upkeep struct {
	Store      sink.Store
	Heads      *heads.Heads
	Compaction config.Compaction
	Log        *slog.Logger
}

// Run works on a shard until ctx ends. No error stops the shard.
func (u *Upkeep) Run(ctx context.Context, shard int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return u.removeOrphans(ctx, shard) })
	g.Go(func() error { return u.compact(ctx, shard) })
	return g.Wait()
}

// Pauses between attempts to merge, and to remove what was merged. At a window a second the
// smallest block fills in about a minute.
const (
	compactInterval = time.Minute
	RemovalInterval = time.Hour
)

// compact merges a shard's rows in the background, and removes what was merged, until ctx ends. An
// error does not stop the shard.
func (u *Upkeep) compact(ctx context.Context, shard int) error {
	if !u.Compaction.Enabled {
		return nil
	}
	log := u.Log.With("shard", shard)
	c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: u.Store,
		Known: u.Heads.Known(shard), Grace: u.Compaction.Grace, Log: u.Log})
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
		if err == nil && time.Since(removed) >= RemovalInterval {
			removed = time.Now()
			err = u.removeMerged(ctx, c, shard)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("rows not merged; trying again later", "in", compactInterval, "error", err)
		}
	}
}

// removeMerged removes merged rows and manifests that no generation in the store needs.
func (u *Upkeep) removeMerged(ctx context.Context, c *commitlog.Compactor, shard int) error {
	keep, err := OldestCut(ctx, u.Store, shard)
	if err != nil {
		return err
	}
	removed, err := c.Remove(ctx, keep)
	if removed.Objects > 0 {
		u.Log.Info("merged rows removed", "shard", shard, "objects", removed.Objects, "bytes", removed.Bytes)
	}
	if err != nil || u.Compaction.History == 0 {
		return err
	}
	removed, err = c.Fold(ctx, commitlog.FoldOptions{Keep: keep, History: u.Compaction.History})
	if removed.Objects > 0 {
		u.Log.Info("manifests folded and removed", "shard", shard, "manifests", removed.Objects, "bytes", removed.Bytes)
	}
	return err
}

// OldestCut returns the oldest manifest of a shard in the cut of any generation, ready or being
// built; 0 before the first generation.
func OldestCut(ctx context.Context, store sink.Store, shard int) (int64, error) {
	numbers, err := generation.Numbers(ctx, store)
	if err != nil {
		return 0, err
	}
	oldest := int64(math.MaxInt64)
	for _, g := range numbers {
		doc, err := generation.Load(ctx, store, g)
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
