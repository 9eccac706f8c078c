package forget

import (
	"context"
	"time"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// OldestDeletion returns the event time of the oldest deletion of a node that is still in a store, zero if there is
// none. It reads the ids of all nodes.
func OldestDeletion(ctx context.Context, store sink.Store, shards int) (oldest time.Time, err error) {
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return oldest, err
	}
	for p := range cut {
		for row, err := range cut.Deletions(ctx, store, p) {
			if err != nil {
				return oldest, err
			}
			if at := time.UnixMicro(row.EventTime); oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
	}
	return oldest, nil
}
