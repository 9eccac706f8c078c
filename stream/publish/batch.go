package publish

import (
	"context"
	"fmt"
	"time"

	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

const (
	// batch is how many rows are encoded and published at a time.
	batch = 1024
	// saveRows and saveManifests bound what a step publishes before the cursor is saved. Saving takes two
	// requests to the store, which is long for windows of a few rows. After a crash, what was published since
	// the cursor was saved is published again.
	saveRows      = 8 * batch
	saveManifests = 1000
)

// batcher encodes and publishes committed rows, gathered over windows.
type batcher struct {
	*Follower
	model *Model
	texts []string // of those records that are not deleted
	out   []embedding.Record
	// from and to are the manifests that the records come from.
	from, to int64
	// rows and segments were added since the cursor was saved.
	rows, segments int
}

// add adds the rows of one window, or of a merged block.
func (b *batcher) add(ctx context.Context, s *commitlog.Segment) error {
	columns := []string{rows.ColNodeID, rows.ColText, rows.ColDeleted, rows.ColEventTime}
	for r, err := range s.Rows(ctx, b.opts.Store, rows.ReadOptions{Columns: columns}) {
		if err != nil {
			return err
		}
		if len(b.out) == 0 {
			b.from = s.From
		}
		b.to = s.To
		b.out = append(b.out, b.record(r, b.model))
		if !r.Deleted {
			b.texts = append(b.texts, r.Text)
		}
		if b.rows++; len(b.out) == batch {
			if err := b.send(ctx); err != nil {
				return err
			}
		}
	}
	b.segments++
	b.to = s.To
	if b.rows >= saveRows || b.segments >= saveManifests {
		if err := b.finish(ctx); err != nil {
			return err
		}
		b.rows, b.segments = 0, 0
		return b.Follower.save(ctx)
	}
	return nil
}

// finish publishes what has been gathered.
func (b *batcher) finish(ctx context.Context) error {
	if b.segments == 0 {
		return nil
	}
	if err := b.send(ctx); err != nil {
		return err
	}
	if b.since.IsZero() {
		b.since = time.Now()
	}
	// Topic and end are those of the cursor until it moves.
	to := b.model.position(b.to)
	b.at.Generation, b.at.Seq, b.at.Format = to.Generation, to.Seq, to.Format
	b.reached = max(b.reached, b.to)
	return nil
}

// send encodes and publishes what has been gathered.
func (b *batcher) send(ctx context.Context) error {
	if len(b.out) == 0 {
		return nil
	}
	dim := b.model.Dim
	// The records keep views into vectors, so each batch gets its own.
	vectors := make([]float32, len(b.texts)*dim)
	if err := b.model.Encode(b.texts, vectors); err != nil {
		return fmt.Errorf("encode rows of shard %d, manifests %d to %d: %w", b.opts.Shard, b.from, b.to, err)
	}
	next := 0
	for i := range b.out {
		if !b.out[i].Deleted {
			from := next * dim
			b.out[i].SetVector(b.texts[next], vectors[from:from+dim:from+dim])
			next++
		}
	}
	err := b.publish(ctx, b.model, b.out)
	b.texts, b.out = b.texts[:0], b.out[:0]
	return err
}
