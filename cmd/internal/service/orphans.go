package service

import (
	"context"
	"time"

	"giantstream/sink"
	"giantstream/stream"
)

// orphanInterval is how often a shard's owner looks for rows that no manifest
// names: they cost space and nothing else.
const orphanInterval = time.Hour

// removeOrphans removes a shard's orphans now and then until ctx ends. Failing
// to do so is no reason to stop the shard.
func (s *Service) removeOrphans(ctx context.Context, shard int) error {
	log := s.log.With("shard", shard)
	orphans := stream.NewOrphans(s.store, shard)
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

// probeAge is when the object of a probe is left over for sure: one in use
// lives for seconds, and clocks of a store and its users agree within minutes.
const probeAge = time.Hour

// removeProbes removes what probes of processes that died have left.
func (s *Service) removeProbes(ctx context.Context) {
	if err := sink.RemoveProbes(ctx, s.store, time.Now().Add(-probeAge)); err != nil {
		s.log.Warn("left-over probe objects not removed; the next start tries again", "error", err)
	}
}
