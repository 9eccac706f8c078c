package publish

import (
	"context"
	"math"

	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// switchTo publishes the shard's embeddings of a generation that has become current, or whose format
// has changed. The cursor then stands at the generation's cut, and the next steps publish what was
// committed since.
func (f *Follower) switchTo(ctx context.Context, model *Model) error {
	f.switched = true
	changed, err := f.newestAfter(ctx, min(f.cursor.Seq, model.Cut), math.MaxInt64)
	if err != nil {
		return err
	}
	// Nothing was published before generation 1, so there are no deletions to catch up with.
	if model.Generation > 1 {
		if err := f.publishDeletions(ctx, model, &changed); err != nil {
			return err
		}
	}
	unchanged := func(id string) bool { return changed.seq[id] <= model.Cut }
	if err := f.publishParts(ctx, model, unchanged); err != nil {
		return err
	}
	to := model.position(model.Cut)
	to.Ahead = max(f.at.Seq, f.at.Ahead)
	f.ahead = newest{} // of the stretch after the former position
	return f.advance(ctx, to)
}

// publishDeletions sends the tombstones of nodes deleted between the cursor and the new
// generation's cut, unless they have changed since.
func (f *Follower) publishDeletions(ctx context.Context, model *Model, changed *newest) error {
	if f.cursor.Seq >= model.Cut {
		return nil
	}
	for s, err := range commitlog.Segments(ctx, f.opts.Store, f.opts.Shard, f.cursor.Seq, model.Cut) {
		if err != nil {
			return err
		}
		var out []embedding.Record
		columns := []string{rows.ColNodeID, rows.ColDeleted, rows.ColEventTime}
		for r, err := range s.Rows(ctx, f.opts.Store, rows.ReadOptions{Columns: columns}) {
			if err != nil {
				return err
			}
			if r.Deleted && !changed.supersedes(r) {
				out = append(out, f.record(r, model))
			}
		}
		if err := f.publish(ctx, model, out); err != nil {
			return err
		}
	}
	return nil
}
