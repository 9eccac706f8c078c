package stream

import (
	"context"
	"errors"
)

// removeStates removes all but the newest checkpoints of the state, and then the
// files that none of those names and none to come may name. Why it may, whoever
// is uploading meanwhile: see doc.go, "Checkpoints".
func (o *Orphans) removeStates(ctx context.Context, removed *Removed) error {
	kept, newest, err := keptCheckpoints(ctx, o.store, o.shard)
	if errors.Is(err, ErrBadCheckpoint) || err == nil && newest == 0 {
		return nil // what cannot be read may name any file
	}
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, c := range kept {
		for _, f := range c.Files {
			named[f.Key] = true
		}
	}
	for info, err := range o.store.List(ctx, checkpointPrefix(o.shard), "") {
		if err != nil {
			return err
		}
		if number, ours := checkpointNumber(o.shard, info.Key); !ours || number >= kept[0].Number {
			continue
		}
		if err := removed.object(ctx, o.store, info); err != nil {
			return err
		}
	}
	for info, err := range o.store.List(ctx, stateFilePrefix(o.shard), "") {
		if err != nil {
			return err
		}
		number, ours := stateFileNumber(o.shard, info.Key)
		if !ours || named[info.Key] {
			continue
		}
		if number >= newest {
			break // keys ascend by number: the next checkpoint may name these
		}
		if err := removed.object(ctx, o.store, info); err != nil {
			return err
		}
	}
	return nil
}
