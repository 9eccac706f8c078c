package reshard

import (
	"context"
	"fmt"

	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

// checkForgotten returns an error if a node that is to be forgotten is not deleted everywhere: the new store would
// have what it once was, or would not say to consumers that it is gone.
func (r *run) checkForgotten(ctx context.Context) error {
	if len(r.Forget) == 0 {
		return nil
	}
	r.Progress.Stage("look for what is to be forgotten", 0)
	heads := commitlog.Cut{}
	for p, head := range r.heads {
		if heads[p] = 0; head != nil {
			heads[p] = head.Seq
		}
	}
	if r.Generation != nil {
		if r.Generation.Warm() {
			return fmt.Errorf("generation %d was started from what an earlier one had learned: build one from scratch "+
				"('giantstream rebuild --set refresh.warm_start=off'), and let it be published", r.Generation.Number())
		}
		if err := r.checkDeleted(ctx, r.Generation.Cut(), nil); err != nil {
			return fmt.Errorf("generation %d was built before the deletion: %w. Build one from scratch "+
				"('giantstream rebuild --set refresh.warm_start=off'), and let it be published",
				r.Generation.Number(), err)
		}
	}
	cursors, err := r.cursors(ctx)
	if err != nil {
		return err
	}
	return r.checkDeleted(ctx, heads, cursors)
}

// checkDeleted returns an error if the graph at a cut has a node that is to be forgotten or a link to one, or if the
// deletion of one is not published. cursors may be nil.
func (r *run) checkDeleted(ctx context.Context, cut commitlog.Cut, cursors []commitlog.Published) error {
	for p := range cut {
		for row, err := range cut.Facts(ctx, r.From, p) {
			if err != nil {
				return err
			}
			r.Progress.Add(1)
			for _, label := range row.Labels {
				if r.Forget[label] {
					return fmt.Errorf("node %q cannot be forgotten: %w", label, shard.ErrLive)
				}
			}
			if !r.Forget[row.NodeID] {
				continue
			}
			if !row.Deleted {
				return fmt.Errorf("node %q cannot be forgotten: %w", row.NodeID, shard.ErrLive)
			}
			if r.Generation != nil && cursors != nil && cursors[p].Seq < row.Seq {
				return fmt.Errorf("%w: the deletion of node %q is not published. Start the pipeline of before once "+
					"more, and stop it when it is idle", ErrBusy, row.NodeID)
			}
		}
	}
	return nil
}
