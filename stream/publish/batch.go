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
	out   []embedding.Record
	// ids and texts are those to encode, live[i] the position in out of the record of texts[i].
	ids, texts []string
	live       []int
	attributes []embedding.Attributes // to send behind the records
	// from and to are the manifests that the records come from.
	from, to int64
	// added: segments whose end the position has not reached.
	added bool
}

// add adds the rows of one window, or of a merged block.
func (b *batcher) add(ctx context.Context, s *commitlog.Segment) error {
	alone, err := b.readAlone(ctx, s)
	if err != nil {
		return err
	}
	if err := b.addVectors(ctx, s); err != nil {
		return err
	}
	columns := []string{rows.ColNodeID, rows.ColText, rows.ColDeleted, rows.ColEventTime}
	if len(b.model.Attributes) > 0 {
		columns = append(columns, rows.ColAttributes)
	}
	for r, err := range s.Rows(ctx, b.opts.Store, rows.ReadOptions{Columns: columns}) {
		if err != nil {
			return err
		}
		b.unsavedRows++
		alone.precede(r)
		if b.ahead.supersedes(r) {
			continue
		}
		b.begin(s)
		if err := b.put(ctx, r); err != nil {
			return err
		}
		if err := b.putAttributes(ctx, r); err != nil {
			return err
		}
	}
	for _, r := range alone.rows {
		b.unsavedRows++
		if _, left := alone.at[r.NodeID]; !left {
			continue
		}
		b.begin(s)
		row := commitlog.Row{Row: rows.Row{NodeID: r.NodeID, Attributes: r.Attributes.Attributes,
			EventTime: r.EventTime}, Seq: r.Seq}
		if err := b.putAttributes(ctx, row); err != nil {
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

// begin notes that something of a segment is to be sent.
func (b *batcher) begin(s *commitlog.Segment) {
	if len(b.out)+len(b.attributes) == 0 {
		b.from = s.From
	}
	b.to = s.To
}

// put adds a row, and sends what has been gathered if that is enough.
func (b *batcher) put(ctx context.Context, r commitlog.Row) error {
	b.out = append(b.out, b.record(r, b.model))
	if !r.Deleted {
		b.live = append(b.live, len(b.out)-1)
		b.ids, b.texts = append(b.ids, b.out[len(b.out)-1].NodeID), append(b.texts, r.Text)
	}
	if len(b.out) < batch {
		return nil
	}
	return b.send(ctx)
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
	b.at.Generation, b.at.Seq, b.at.Format, b.at.Attributes = to.Generation, to.Seq, to.Format, to.Attributes
	b.reached = max(b.reached, b.to)
	return nil
}

// send encodes and publishes what has been gathered.
func (b *batcher) send(ctx context.Context) error {
	if err := b.sendRecords(ctx); err != nil || len(b.attributes) == 0 {
		return err
	}
	err := b.publishAll(ctx, b.attributes)
	b.attributes = b.attributes[:0]
	return err
}

func (b *batcher) sendRecords(ctx context.Context) error {
	if len(b.out) == 0 {
		return nil
	}
	dim := b.model.Dim
	// The records keep views into vectors, so each batch gets its own.
	vectors := make([]float32, len(b.texts)*dim)
	encode := b.model.Encode
	if e := b.Follower.vectors.encoder; e != nil {
		encode = e.Encode
	}
	if err := encode(b.ids, b.texts, vectors); err != nil {
		return fmt.Errorf("encode rows of shard %d, manifests %d to %d, by generation %d: %w",
			b.opts.Shard, b.from, b.to, b.model.Generation, err)
	}
	for i, at := range b.live {
		b.out[at].SetVector(b.texts[i], vectors[i*dim:(i+1)*dim:(i+1)*dim])
	}
	err := b.publish(ctx, b.model, b.out)
	b.out, b.ids, b.texts, b.live = b.out[:0], b.ids[:0], b.texts[:0], b.live[:0]
	return err
}
