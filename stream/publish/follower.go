package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream"
)

// Model is the generation that embeddings are made with.
type Model struct {
	Generation int64
	// Cut is the newest manifest of the shard that Parts cover.
	Cut int64
	// Parts are the Parquet objects with the shard's embeddings at the cut.
	Parts []string
	Dim   int
	// Encode writes the embedding of texts[i] to out[i*Dim : (i+1)*Dim].
	Encode func(texts []string, out []float32) error
}

// Publisher delivers records: once Publish returns nil, all are acknowledged.
type Publisher interface {
	Publish(ctx context.Context, records []embedding.Record) error
}

// Options of a Follower.
type Options struct {
	Shard     int
	Store     sink.Store
	Publisher Publisher
	// Model returns the current generation's model for this shard, nil while
	// there is none. Called once per step.
	Model func() *Model
	// Wake tells that there may be something new; it may be nil.
	Wake <-chan struct{}
	// Poll is how long to wait without a Wake before looking again.
	Poll time.Duration
	Log  *slog.Logger
}

// ErrNotAlone: another follower has moved the cursor of this shard meanwhile.
var ErrNotAlone = errors.New("another follower publishes this shard")

// Follower publishes the embeddings of one shard.
type Follower struct {
	opts   Options
	cursor stream.Published
	// sending: something was sent that the cursor does not cover yet.
	sending bool
	at      atomic.Pointer[stream.Published]
}

// batch is how many rows are encoded and published at a time.
const batch = 1024

// New returns a Follower that continues where the last one of its shard stopped.
func New(opts Options) *Follower { return &Follower{opts: opts} }

// Position returns what has been published, as far as this follower knows.
// Safe for concurrent use.
func (f *Follower) Position() stream.Published {
	if p := f.at.Load(); p != nil {
		return *p
	}
	return stream.Published{}
}

// Run publishes until ctx ends, which is no error. A broker or store that
// fails is tried again with growing pauses; nothing is skipped.
func (f *Follower) Run(ctx context.Context) error {
	const first, longest = 250 * time.Millisecond, 30 * time.Second
	pause := first
	for {
		progressed, err := f.Step(ctx)
		wait := f.opts.Poll
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the step failed because the context has ended
		case err != nil:
			f.opts.Log.Warn("publishing embeddings failed, will retry", "shard", f.opts.Shard, "in", pause, "error", err)
			wait, pause = pause, min(2*pause, longest)
		case progressed:
			pause = first
			continue
		default:
			pause = first
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-f.opts.Wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Step publishes what is there now: a new generation as a whole, or the
// manifests committed since the last step. It reports whether it did anything.
func (f *Follower) Step(ctx context.Context) (_ bool, err error) {
	defer func() {
		if err != nil {
			f.handBack(ctx)
		}
	}()
	// Whatever this follower believes: who has taken its place, or was late,
	// says so here.
	cursor, err := stream.LoadPublished(ctx, f.opts.Store, f.opts.Shard)
	if err != nil {
		return false, err
	}
	f.moveTo(cursor)
	model := f.opts.Model()
	if model == nil {
		return false, nil
	}
	if model.Generation > f.cursor.Generation {
		return true, f.switchTo(ctx, model)
	}
	before := f.cursor.Seq
	for s, err := range stream.Segments(ctx, f.opts.Store, f.opts.Shard, f.cursor.Seq, 0) {
		if err != nil {
			return false, err
		}
		if err := f.publishSegment(ctx, s, model); err != nil {
			return false, err
		}
		if err := f.advance(ctx, stream.Published{Generation: model.Generation, Seq: s.To}); err != nil {
			return false, err
		}
	}
	return f.cursor.Seq > before, nil
}

// switchTo publishes the shard's embeddings of a generation that has become
// current; the cursor then stands at its cut, and the next step takes up what
// was committed since.
func (f *Follower) switchTo(ctx context.Context, model *Model) error {
	// Generation 1 follows on nothing published, so it has no deletions to
	// catch up with.
	if model.Generation > 1 {
		if err := f.publishDeletions(ctx, model); err != nil {
			return err
		}
	}
	changed := map[string]struct{}{}
	for s, err := range stream.Segments(ctx, f.opts.Store, f.opts.Shard, model.Cut, 0) {
		if err != nil {
			return err
		}
		for r, err := range s.Rows(ctx, f.opts.Store, rows.ReadOptions{Columns: []string{rows.ColNodeID}}) {
			if err != nil {
				return err
			}
			changed[r.NodeID] = struct{}{}
		}
	}
	out := make([]embedding.Record, 0, batch)
	for _, part := range model.Parts {
		for r, err := range embedding.ReadParquet(ctx, f.opts.Store, part) {
			if err != nil {
				return err
			}
			if _, ok := changed[r.NodeID]; ok {
				continue
			}
			if out = append(out, r); len(out) == batch {
				if err := f.publish(ctx, out); err != nil {
					return err
				}
				out = out[:0]
			}
		}
	}
	if err := f.publish(ctx, out); err != nil {
		return err
	}
	return f.advance(ctx, stream.Published{Generation: model.Generation, Seq: model.Cut})
}

// publishDeletions sends the tombstones of nodes deleted between the cursor
// and the new generation's cut.
func (f *Follower) publishDeletions(ctx context.Context, model *Model) error {
	if f.cursor.Seq >= model.Cut {
		return nil
	}
	for s, err := range stream.Segments(ctx, f.opts.Store, f.opts.Shard, f.cursor.Seq, model.Cut) {
		if err != nil {
			return err
		}
		var out []embedding.Record
		for r, err := range s.Rows(ctx, f.opts.Store, rows.ReadOptions{Columns: []string{rows.ColNodeID, rows.ColDeleted, rows.ColEventTime}}) {
			if err != nil {
				return err
			}
			if r.Deleted {
				out = append(out, f.record(r, model))
			}
		}
		if err := f.publish(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// publishSegment encodes and publishes the rows of one window, or of a block of
// merged ones.
func (f *Follower) publishSegment(ctx context.Context, s *stream.Segment, model *Model) error {
	var (
		texts   = make([]string, 0, batch)
		out     = make([]embedding.Record, 0, batch)
		vectors []float32
	)
	send := func() error {
		// The records keep views into vectors, so each batch gets its own.
		vectors = make([]float32, len(texts)*model.Dim)
		if err := model.Encode(texts, vectors); err != nil {
			return fmt.Errorf("encode rows of shard %d, manifests %d to %d: %w", f.opts.Shard, s.From, s.To, err)
		}
		next := 0
		for i := range out {
			if !out[i].Deleted {
				out[i].Vector = vectors[next : next+model.Dim : next+model.Dim]
				next += model.Dim
			}
		}
		err := f.publish(ctx, out)
		texts, out = texts[:0], out[:0]
		return err
	}
	for r, err := range s.Rows(ctx, f.opts.Store, rows.ReadOptions{Columns: []string{rows.ColNodeID, rows.ColText, rows.ColDeleted, rows.ColEventTime}}) {
		if err != nil {
			return err
		}
		out = append(out, f.record(r, model))
		if !r.Deleted {
			texts = append(texts, r.Text)
		}
		if len(out) == batch {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

func (f *Follower) record(r stream.CutRow, model *Model) embedding.Record {
	return embedding.Record{NodeID: r.NodeID, Generation: model.Generation, EventTime: r.EventTime,
		Shard: f.opts.Shard, Seq: r.Seq, Deleted: r.Deleted}
}

// publish sends records that the cursor does not cover yet.
func (f *Follower) publish(ctx context.Context, records []embedding.Record) error {
	f.sending = f.sending || len(records) > 0
	return f.opts.Publisher.Publish(ctx, records)
}

// advance moves the cursor over what was sent, unless another follower has moved
// it meanwhile.
func (f *Follower) advance(ctx context.Context, to stream.Published) error {
	now, err := stream.LoadPublished(ctx, f.opts.Store, f.opts.Shard)
	if err != nil {
		return err
	}
	if now != f.cursor {
		return fmt.Errorf("shard %d: %w: the cursor was %+v and is %+v", f.opts.Shard, ErrNotAlone, f.cursor, now)
	}
	if err := stream.SavePublished(ctx, f.opts.Store, f.opts.Shard, to); err != nil {
		return err
	}
	f.sending = false
	f.moveTo(to)
	return nil
}

func (f *Follower) moveTo(cursor stream.Published) {
	f.cursor = cursor
	f.at.Store(&cursor)
}

// handBackTime bounds the store calls of a follower that may have lost its
// shard.
const handBackTime = 10 * time.Second

// handBack takes care of what this follower has sent and the cursor does not
// cover. If another one has taken the shard meanwhile and gone on, these
// records may have come after its newer ones (this process stood still, or was
// cut off, in the midst of sending). So the cursor goes back to before them, and
// whoever has the shard finds it there and publishes from there again.
func (f *Follower) handBack(ctx context.Context) {
	if !f.sending {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handBackTime)
	defer cancel()
	now, err := stream.LoadPublished(ctx, f.opts.Store, f.opts.Shard)
	if err == nil && (now.Generation > f.cursor.Generation || now.Seq > f.cursor.Seq) {
		f.opts.Log.Warn("another worker went on with this shard while embeddings were under way; they will be published again",
			"shard", f.opts.Shard, "from", f.cursor.Seq, "to", now.Seq)
		err = stream.SavePublished(ctx, f.opts.Store, f.opts.Shard, f.cursor)
	}
	if err != nil {
		f.opts.Log.Warn("cannot tell whether another worker has this shard", "shard", f.opts.Shard, "error", err)
		return // sending stays set: the next step that fails tries again
	}
	f.sending = false
}
