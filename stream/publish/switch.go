package publish

import (
	"cmp"
	"context"
	"math"

	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// switchTo publishes the shard's embeddings of a generation that has become current, or that nodes
// are to get again (Model.Repeats). The cursor then stands at the generation's cut, and the next steps publish what was
// committed since.
func (f *Follower) switchTo(ctx context.Context, model *Model) error {
	f.switched = true
	changed, err := f.newestAfter(ctx, model, min(f.cursor.Seq, model.Cut), math.MaxInt64)
	if err != nil {
		return err
	}
	// Nothing was published before generation 1, so there are no deletions to catch up with.
	if model.Generation > 1 {
		if err := f.publishDeletions(ctx, model, &changed); err != nil {
			return err
		}
	}
	if err := f.publishParts(ctx, model, &changed); err != nil {
		return err
	}
	if err := f.publishAttributes(ctx, model, &changed); err != nil {
		return err
	}
	to := model.position(model.Cut)
	to.Ahead = max(f.at.Seq, f.at.Ahead)
	f.ahead = newest{} // of the stretch after the former position
	return f.advance(ctx, to)
}

// mix says in the cursor, before anything of another generation is sent, that nodes may have vectors of it from here
// on. A follower that continues from such a cursor publishes all nodes again: this follower may die, and the generation
// that it was about to publish may be withdrawn before there is another. The same goes for rows after the position, up
// to the cut of the generation.
func (f *Follower) mix(ctx context.Context, model *Model) error {
	mixed := f.at
	mixed.Mixed = true
	if model.Cut > f.at.Seq {
		mixed.Ahead = max(mixed.Ahead, model.Cut)
	}
	mixed.Attributes = cmp.Or(mixed.Attributes, model.position(0).Attributes) // the topic may have them
	if f.at.Generation == 0 || mixed == f.at {
		return nil // nothing is published, or the cursor says so
	}
	return f.advance(ctx, mixed)
}

// publishParts publishes what a generation has stored of the shard's nodes that have not changed since its cut.
func (f *Follower) publishParts(ctx context.Context, model *Model, changed *newest) error {
	out := make([]embedding.Record, 0, batch)
	for _, part := range model.Parts {
		for r, err := range embedding.ReadParquet(ctx, f.opts.Store, part) {
			if err != nil {
				return err
			}
			if changed.seq[r.NodeID] > model.Cut {
				continue
			}
			if out = append(out, r); len(out) == batch {
				if err := f.publish(ctx, model, out); err != nil {
					return err
				}
				out = out[:0]
			}
		}
	}
	return f.publish(ctx, model, out)
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
