package service

import (
	"context"
	"time"

	"giantstream/stream"
)

// lastCheckpointTime bounds how long a shard that is given up may take for a
// last copy of its state: less than the group waits for its members.
const lastCheckpointTime = 20 * time.Second

// lastCheckpoint copies the state of a shard that was stopped in good order, so
// that whoever has it next begins where this one ends. It is no loss if that
// does not succeed.
func (s *Service) lastCheckpoint(shard *stream.Shard, number int) {
	if s.cfg.State.CheckpointEvery <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastCheckpointTime)
	defer cancel()
	if err := shard.Checkpoint(ctx); err != nil {
		s.log.Warn("no state checkpoint at the stop; the next start goes on from an older one", "shard", number, "error", err)
	}
}
