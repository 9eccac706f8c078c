package upkeep

import (
	"context"
	"time"

	"giantstream/stream/commitlog"
)

// orphanInterval is the pause between searches for rows that no manifest names. Such rows only cost
// space.
const orphanInterval = time.Hour

// removeOrphans removes a shard's orphans, every orphanInterval until ctx ends. An error does not
// stop the shard.
func (u *Upkeep) removeOrphans(ctx context.Context, shard int) error {
	log := u.Log.With("shard", shard)
	orphans := commitlog.NewOrphans(u.Store, shard)
	tick := time.NewTicker(orphanInterval)
	defer tick.Stop()
	for {
		removed, err := orphans.Remove(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			log.Warn("orphaned rows not removed; trying again later", "in", orphanInterval, "error", err)
		case removed.Objects > 0:
			log.Info("orphaned rows removed", "objects", removed.Objects, "bytes", removed.Bytes)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
