package publish

import (
	"context"

	"giantstream/stream/commitlog"
)

// vectors are those of the shard's nodes at a position, for generations whose embeddings change with them. A node whose
// vectors change has a row in the same window, so that it is encoded again.
type vectors struct {
	encoder    Encoder // nil for a generation that takes no vectors
	generation int64
	to         int64 // the manifest that the encoder has followed to
}

// follow brings the vectors to the position of the follower. After a restart, and where the position has gone back, it
// reads those after the cut again. A merged block may reach beyond the position: what of it is newer comes later, and
// what it supersedes is superseded by that.
func (v *vectors) follow(ctx context.Context, f *Follower, model *Model) error {
	if model.Follow == nil {
		*v = vectors{}
		return nil
	}
	if v.encoder != nil && v.generation == model.Generation && v.to == f.at.Seq {
		return nil
	}
	*v = vectors{}
	encoder := model.Follow()
	for s, err := range commitlog.Segments(ctx, f.opts.Store, f.opts.Shard, model.Cut, 0) {
		if err != nil {
			return err
		}
		if s.From > f.at.Seq {
			break
		}
		for r, err := range s.Vectors(ctx, f.opts.Store) {
			if err != nil {
				return err
			}
			if r.Seq <= f.at.Seq {
				encoder.Follow(&r.Vectors)
			}
		}
	}
	*v = vectors{encoder, model.Generation, f.at.Seq}
	return nil
}

// addVectors adds the vectors of one window, or of a merged block. What has been gathered is sent before, with the
// vectors of its own windows.
func (b *batcher) addVectors(ctx context.Context, s *commitlog.Segment) error {
	v := &b.Follower.vectors
	if v.encoder == nil {
		return nil
	}
	v.to = -1 // neither here nor there, until all are in
	for r, err := range s.Vectors(ctx, b.opts.Store) {
		if err == nil {
			err = b.send(ctx)
		}
		if err != nil {
			return err
		}
		v.encoder.Follow(&r.Vectors)
	}
	v.to = s.To
	return nil
}
