package service

import (
	"context"
	"time"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// orphanInterval is the pause between searches for rows that no manifest names. Such rows only cost
// space.
const orphanInterval = time.Hour

// removeOrphans removes a shard's orphans, every orphanInterval until ctx ends. An error does not
// stop the shard.
func (s *Service) removeOrphans(ctx context.Context, shard int) error {
	log := s.log.With("shard", shard)
	orphans := commitlog.NewOrphans(s.store, shard)
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

// probeAge is the age at which the object of a probe is certainly left over. A probe takes seconds,
// and the clocks of a store and its users agree within minutes.
const probeAge = time.Hour

// removeProbes removes the objects that probes of killed processes have left.
func (s *Service) removeProbes(ctx context.Context) {
	if err := sink.RemoveProbes(ctx, s.store, time.Now().Add(-probeAge)); err != nil {
		s.log.Warn("left-over probe objects not removed; the next start tries again", "error", err)
	}
}
