package publish

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// Canary is a generation on trial: a share of the nodes gets it in place of the one that is served.
type Canary struct {
	*Model
	Share float64
}

// InShare reports whether a node is in a share of the nodes: whether the first 8 bytes of the SHA-256 of its id, as a
// big-endian number, are below that share of 2⁶⁴. So a larger share has all nodes of a smaller one, and consumers can
// tell.
func InShare(id string, share float64) bool {
	if share <= 0 || share >= 1 {
		return share >= 1
	}
	sum := sha256.Sum256([]byte(id))
	return float64(binary.BigEndian.Uint64(sum[:8])) < share*(1<<64)
}

// trial returns the canary's generation and its share as the cursor has them, zeros for none.
func (m *Model) trial() (generation int64, share float64) {
	if m.Canary == nil || m.Canary.Share <= 0 {
		return 0, 0
	}
	return m.Canary.Generation, m.Canary.Share
}

// Recasts says whether nodes are to get vectors of another generation than a cursor says, because a trial has begun,
// has ended, or has another share.
func (m *Model) Recasts(at commitlog.Published) bool {
	generation, share := m.trial()
	return at.Generation == m.Generation && (at.Canary != generation || at.CanaryShare != share)
}

// of returns what makes the embedding of a node that changes while the cursor is at a position. A trial that has not
// begun there, or whose model is gone, has no nodes yet, or none any more.
func (m *Model) of(id string, at commitlog.Published) *Model {
	if generation, _ := m.trial(); generation > 0 && generation == at.Canary && InShare(id, at.CanaryShare) {
		return m.Canary.Model
	}
	return m
}

// waits reports whether a trial begins later: what was committed up to the canary's cut is not all published yet, and a
// node's text must not go back in time.
func (m *Model) waits(at commitlog.Published) bool {
	return m.Canary != nil && m.Canary.Share > 0 && at.Seq < m.Canary.Cut
}

// recast publishes the nodes anew that get another generation now, and no others: those of the share by the canary's
// generation, and those that have left the share by the one that is served. The cursor stays where it is in the log.
func (f *Follower) recast(ctx context.Context, model *Model) error {
	if err := f.save(ctx); err != nil {
		return err
	}
	was := f.at
	generation, share := model.trial()
	if err := f.mix(ctx, max(was.CanaryShare, share), 0); err != nil {
		return err
	}
	// What the topic may have after the position comes first. Until then nodes of the share get what is served.
	if f.repeats || f.catchesUp() {
		was = f.at
		if err := f.follow(ctx, model); err != nil || f.catchesUp() {
			return err
		}
	}
	f.switched = true
	entering := func(id string) bool {
		return InShare(id, share) && !(was.Canary == generation && InShare(id, was.CanaryShare))
	}
	leaving := func(id string) bool { return InShare(id, was.CanaryShare) && !InShare(id, share) }
	if generation > 0 {
		if err := f.publishNodes(ctx, model.Canary.Model, entering); err != nil {
			return err
		}
	}
	if err := f.publishNodes(ctx, model, leaving); err != nil {
		return err
	}
	to := f.at
	to.Canary, to.CanaryShare = generation, share
	f.opts.Log.Info("a share of the nodes has another generation", "shard", f.opts.Shard, "served", model.Generation,
		"canary", generation, "share", share)
	return f.advance(ctx, to)
}

// mix says in the cursor, before anything of another generation is sent, that the nodes of a share may have either from
// here on. Whoever goes on from such a cursor publishes all of them: this follower may die, and what it was about to
// publish may be withdrawn before there is another. The same goes for rows after the position, up to the cut of what is
// sent.
func (f *Follower) mix(ctx context.Context, share float64, cut int64) error {
	mixed := f.at
	mixed.Canary, mixed.CanaryShare = 0, share
	if cut > f.at.Seq {
		mixed.Ahead = max(mixed.Ahead, cut)
	}
	if f.at.Generation == 0 || mixed == f.at {
		return nil // nothing is published, or the cursor says so
	}
	return f.advance(ctx, mixed)
}

// publishNodes publishes the live ones of some nodes as they are at the follower's position: from the generation's
// parts, or encoded where they have changed after its cut. It holds the ids of those that have in memory.
func (f *Follower) publishNodes(ctx context.Context, model *Model, which func(id string) bool) error {
	changed := map[string]int64{} // the newest row of each
	columns := []string{rows.ColNodeID, rows.ColText, rows.ColDeleted, rows.ColEventTime}
	each := func(columns []string, do func(commitlog.Row) error) error {
		if f.at.Seq <= model.Cut {
			return nil
		}
		for s, err := range commitlog.Segments(ctx, f.opts.Store, f.opts.Shard, model.Cut, f.at.Seq) {
			if err != nil {
				return err
			}
			for r, err := range s.Rows(ctx, f.opts.Store, rows.ReadOptions{Columns: columns}) {
				if err == nil && which(r.NodeID) {
					err = do(r)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := each(columns[:1], func(r commitlog.Row) error {
		changed[r.NodeID] = max(changed[r.NodeID], r.Seq)
		return nil
	})
	if err != nil {
		return err
	}
	unchanged := func(id string) bool { _, ok := changed[id]; return !ok && which(id) }
	if err := f.publishParts(ctx, model, unchanged); err != nil {
		return err
	}
	b := &batcher{Follower: f, model: model, only: model}
	err = each(columns, func(r commitlog.Row) error {
		if r.Deleted || r.Seq != changed[r.NodeID] {
			return nil
		}
		return b.put(ctx, r)
	})
	if err != nil {
		return err
	}
	return b.send(ctx)
}

// publishParts publishes what a generation has stored of some nodes of the shard.
func (f *Follower) publishParts(ctx context.Context, model *Model, which func(id string) bool) error {
	out := make([]embedding.Record, 0, batch)
	for _, part := range model.Parts {
		for r, err := range embedding.ReadParquet(ctx, f.opts.Store, part) {
			if err != nil {
				return err
			}
			if !which(r.NodeID) {
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
