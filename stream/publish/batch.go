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
	// saveRows and saveManifests bound what is published before the cursor is saved. Saving takes two
	// requests to the store, which is long for windows of a few rows. After a crash, what was published since
	// the cursor was saved is published again.
	saveRows      = 8 * batch
	saveManifests = 1000
)

// full says whether so much is published that the cursor is to be saved.
func full(rows, segments int) bool { return rows >= saveRows || segments >= saveManifests }

// batcher encodes and publishes committed rows, gathered over windows.
type batcher struct {
	*Follower
	model *Model
	// only, if not nil, makes all embeddings, also of nodes that are in a canary's share.
	only *Model
	out  []embedding.Record
	// lanes are the generations that records are of, with the texts to encode.
	lanes []lane
	// from and to are the manifests that the records come from.
	from, to int64
	// added: segments whose end the position has not reached.
	added bool
}

// lane is what one generation encodes.
type lane struct {
	model *Model
	at    []int // the positions of the records in batcher.out
	texts []string
}

// add adds the rows of one window, or of a merged block.
func (b *batcher) add(ctx context.Context, s *commitlog.Segment) error {
	columns := []string{rows.ColNodeID, rows.ColText, rows.ColDeleted, rows.ColEventTime}
	for r, err := range s.Rows(ctx, b.opts.Store, rows.ReadOptions{Columns: columns}) {
		if err != nil {
			return err
		}
		b.unsavedRows++
		if b.ahead.supersedes(r) {
			continue
		}
		if len(b.out) == 0 {
			b.from = s.From
		}
		b.to = s.To
		if err := b.put(ctx, r); err != nil {
			return err
		}
	}
	b.unsavedSegments++
	b.added, b.to = true, s.To
	if full(b.unsavedRows, b.unsavedSegments) {
		if err := b.finish(ctx); err != nil {
			return err
		}
		return b.Follower.save(ctx)
	}
	return nil
}

// put adds a row, and sends what has been gathered if that is enough.
func (b *batcher) put(ctx context.Context, r commitlog.Row) error {
	model := b.only
	if model == nil {
		model = b.model.of(r.NodeID, b.at)
	}
	b.out = append(b.out, b.record(r, model))
	if !r.Deleted {
		l := b.lane(model)
		l.at, l.texts = append(l.at, len(b.out)-1), append(l.texts, r.Text)
	}
	if len(b.out) < batch {
		return nil
	}
	return b.send(ctx)
}

// lane returns that of a generation.
func (b *batcher) lane(model *Model) *lane {
	for i := range b.lanes {
		if b.lanes[i].model == model {
			return &b.lanes[i]
		}
	}
	b.lanes = append(b.lanes, lane{model: model})
	return &b.lanes[len(b.lanes)-1]
}

// finish publishes what has been gathered.
func (b *batcher) finish(ctx context.Context) error {
	if !b.added {
		return nil
	}
	if err := b.send(ctx); err != nil {
		return err
	}
	b.added = false
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
	for i := range b.lanes {
		l := &b.lanes[i]
		dim := l.model.Dim
		// The records keep views into vectors, so each batch gets its own.
		vectors := make([]float32, len(l.texts)*dim)
		if err := l.model.Encode(l.texts, vectors); err != nil {
			return fmt.Errorf("encode rows of shard %d, manifests %d to %d, by generation %d: %w",
				b.opts.Shard, b.from, b.to,
				l.model.Generation, err)
		}
		for k, at := range l.at {
			from := k * dim
			b.out[at].SetVector(l.texts[k], vectors[from:from+dim:from+dim])
			b.out[at] = l.model.Format.Narrow(b.out[at])
		}
		l.at, l.texts = l.at[:0], l.texts[:0]
	}
	err := b.deliver(ctx, b.out)
	b.out = b.out[:0]
	return err
}
