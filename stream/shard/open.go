package shard

import (
	"context"
	"errors"
	"fmt"

	"giantstream/stream/shard/engine"
)

// openOrReplaceState opens the state of the shard. Instead of a damaged one it opens a new one.
func (o *Options) openOrReplaceState(ctx context.Context, want meta) (*state, error) {
	st, err := o.openState(ctx, o.Dir, want)
	if errors.Is(err, ErrStateDamaged) {
		if err := o.setAside(err); err != nil {
			return nil, err
		}
		st, err = o.openState(ctx, o.Dir, want)
	}
	return st, err
}

// closeState closes the state and, if it is damaged, sets it aside.
func (s *Shard) closeState() error {
	if err := s.state.close(); err != nil {
		return fmt.Errorf("close the state of shard %d: %w", s.opts.Shard, err)
	}
	if reason := s.state.guard.Failure(); errors.Is(reason, ErrStateDamaged) {
		return s.opts.setAside(reason)
	}
	return nil
}

func (o *Options) setAside(reason error) error {
	to, err := engine.SetAside(o.fs, o.Dir)
	if err != nil {
		return fmt.Errorf("state of shard %d in %s: %w (%w); remove the directory", o.Shard, o.Dir, err, reason)
	}
	o.Log.Warn("local state is damaged and was set aside; "+
		"it is built again from the newest checkpoint or from the topics, and nothing is lost",
		"moved_to", to, "reason", reason)
	o.Listener.SetAside(to, reason)
	return nil
}

// stateReserveBytes is the free space without which a shard does not go on. It takes what all shards
// of a process may have in memory at once: the open windows, and a few memtables on their way to the
// disk. The engine bounds its compactions by the free space itself.
const stateReserveBytes = windowMemoryBytes + memTablesBytes

// checkSpace returns ErrDiskFull if less than `bytes` bytes are free. A copy of the state that was set
// aside is removed first.
func (s *state) checkSpace(bytes uint64) error {
	err := engine.CheckSpace(s.fs.FS, s.dir, bytes)
	if err == nil || engine.RemoveAside(s.fs.FS, s.dir) != nil {
		return err
	}
	return engine.CheckSpace(s.fs.FS, s.dir, bytes)
}
