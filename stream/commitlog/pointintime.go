package commitlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/sink/rows"
)

// RowsUntil yields, for every node of a shard, the newest row at the cut whose event time is not after until
// (microseconds since the Unix epoch). The rows come in ascending order of node id, without features and targets, and
// include deleted nodes. A node whose rows are all later has none.
//
// No statement with a later event time shows in such a row. If the node has no later row in the log, the row is exactly
// what the node was at that time. Otherwise the row may lack statements of that time that were committed together with
// later ones, or that were superseded within a merged block.
func (c Cut) RowsUntil(ctx context.Context, store sink.Store, shard int, until int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := c.newest(ctx, store, shard, selection{until, factColumns}, yield); err != nil {
			yield(Row{}, fmt.Errorf("rows of shard %d up to an event time: %w", shard, err))
		}
	}
}

// Latest returns the latest event time of the committed rows of a shard, also of those that were superseded, and how
// many nodes have a row that is later than until. The time is 0 for a shard without rows. It holds the ids of these
// nodes in memory.
func (c Cut) Latest(ctx context.Context, store sink.Store, shard int, until int64) (latest, later int64, err error) {
	segments, err := c.segments(ctx, store, shard)
	if err != nil {
		return 0, 0, fmt.Errorf("event times of shard %d: %w", shard, err)
	}
	nodes := map[string]struct{}{}
	for _, s := range segments {
		columns := []string{rows.ColNodeID, rows.ColEventTime}
		for row, err := range s.Rows(ctx, store, rows.ReadOptions{Columns: columns}) {
			if err != nil {
				return 0, 0, fmt.Errorf("event times of shard %d: %w", shard, err)
			}
			latest = max(latest, row.EventTime)
			if row.EventTime > until {
				nodes[row.NodeID] = struct{}{}
			}
		}
	}
	return latest, int64(len(nodes)), nil
}

// ErrNotKept: the rows of a cut are not all in the store any more.
const ErrNotKept = retry.FinalError("the store does not keep this point any more")

// Kept returns ErrNotKept if rows of a shard that the cut shows were removed. Then next is the oldest manifest from
// which on all cuts can be read, and else that of the cut. A cut beyond the head is another error.
func (c Cut) Kept(ctx context.Context, store sink.Store, shard int) (next int64, err error) {
	head, err := headSeq(ctx, store, shard)
	if err != nil {
		return 0, err
	}
	if c[shard] > head {
		return 0, fmt.Errorf("shard %d has no manifest %d, its newest is %d", shard, c[shard], head)
	}
	kept, err := c.kept(ctx, store, shard)
	if err != nil || kept {
		return c[shard], err
	}
	// A cut lacks rows if it ends within a block whose parts were removed. Parts go from the oldest block on.
	low, high := (c[shard]+compactionFanIn-1)/compactionFanIn, head/compactionFanIn+1
	for high-low > 1 {
		mid := low + (high-low)/2
		kept, err := (Cut{shard: mid*compactionFanIn - 1}).kept(ctx, store, shard)
		if err != nil {
			return 0, err
		}
		if kept {
			high = mid
		} else {
			low = mid
		}
	}
	return min(low*compactionFanIn, head), fmt.Errorf("%w: shard %d at manifest %d", ErrNotKept, shard, c[shard])
}

// kept reports whether every object is there that a reader of the cut needs.
func (c Cut) kept(ctx context.Context, store sink.Store, shard int) (bool, error) {
	segments, err := c.segments(ctx, store, shard)
	if errors.Is(err, ErrRemoved) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, s := range segments {
		for _, o := range s.objects {
			if there, err := sink.Exists(ctx, store, o.Key); err != nil || !there {
				return false, err
			}
		}
	}
	return true, nil
}
