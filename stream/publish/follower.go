package publish

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// Model is the generation that embeddings are made with.
type Model struct {
	Generation int64
	// Space is the generation that began the space of its embeddings, 0 if it did itself.
	Space int64
	// Cut is the newest manifest of the shard that Parts cover.
	Cut int64
	// Parts are the Parquet objects with the shard's embeddings at the cut.
	Parts []sink.Ref
	Dim   int
	// Format is what vectors are narrowed to before they are published.
	Format embedding.Format
	// Attributes are the names of those that are published beside embeddings, ascending.
	Attributes []string
	// PassedOver is the newest generation above this one that is complete and not to be served, 0 for none: it is
	// damaged, say, or people have gone back to this one.
	PassedOver int64
	// AsOf is when this process began to look which generation is served, with this one as the answer.
	AsOf time.Time
	// Encode writes the embedding of the node ids[i], whose text is texts[i], to out[i*Dim : (i+1)*Dim].
	Encode func(ids, texts []string, out []float32) error
	// Follow, if not nil, returns an encoder that takes the place of Encode: the embeddings of nodes change with their
	// vectors, which it has as of the cut.
	Follow func() Encoder
}

// Encoder makes embeddings of nodes as they are now.
type Encoder interface {
	// Follow lets a node have the vectors that an input states.
	Follow(*rows.Vectors)
	// Encode is Model.Encode.
	Encode(ids, texts []string, out []float32) error
}

// position is the cursor of all rows up to manifest seq.
func (m *Model) position(seq int64) commitlog.Published {
	p := commitlog.Published{Generation: m.Generation, Seq: seq, Attributes: strings.Join(m.Attributes, ",")}
	if name := m.Format.String(); name != string(embedding.Float32) {
		p.Format = name
	}
	return p
}

// Repeats says whether the model's embeddings that are published up to a cursor are to be published again:
// because they are in another format or with other attributes, or because nodes may have vectors of another generation.
func (m *Model) Repeats(at commitlog.Published) bool {
	want := m.position(0)
	return at.Generation == m.Generation && (at.Mixed || at.Format != want.Format || at.Attributes != want.Attributes)
}

// replaces says whether embeddings that are published up to a cursor are of a generation that is not to be served, so
// that those of the model, an older one, take their place.
func (m *Model) replaces(at commitlog.Published) bool {
	return m.Generation < at.Generation && at.Generation <= m.PassedOver
}

// Publisher delivers records. Once Publish returns nil, all of them are acknowledged.
type Publisher interface {
	Publish(ctx context.Context, records []embedding.Record) error
}

// Options of a Follower.
type Options struct {
	Shard int
	Store sink.Store
	// Outlet is the topic that Publisher delivers to, which has a cursor of its own.
	Outlet    commitlog.Outlet
	Publisher Publisher
	// Keeper, if not nil, has the cursor in place of the store.
	Keeper commitlog.Keeper
	// Attributes delivers attributes to the topic as Publisher does embeddings. It may be nil if no Model has any.
	Attributes func(ctx context.Context, all []embedding.Attributes) error
	// Topic tells what the topic is that Publisher delivers to. With nil it is taken for the one
	// that the cursor is about.
	Topic func(ctx context.Context) (commitlog.SinkTopic, error)
	// Model returns the current generation's model for this shard, nil while there is none. It is
	// called once per step.
	Model func() *Model
	// Failed, if not nil, is called with the reason why a step failed.
	Failed func(ctx context.Context, model *Model, reason error)
	// Known, if not nil, returns a manifest of the shard that this process has committed, which need not be read from
	// the store, and nil for any other. See commitlog.Tail.
	Known func(seq int64) *commitlog.Manifest
	// Announce, if not nil, says on the topic that all of the shard is published with a generation. It returns once
	// that is acknowledged.
	Announce func(context.Context, embedding.Completion) error
	// SaveEvery says for how long the cursor may stay behind what is published. With nil, or while it says 0, every
	// step moves it.
	SaveEvery func() time.Duration
	// Wake signals that there may be something new, or that SaveEvery says less; it may be nil.
	Wake <-chan struct{}
	// Poll is how long to wait for Wake before looking again.
	Poll time.Duration
	Log  *slog.Logger
}

// ErrNotAlone: another follower has moved the cursor of this shard.
var ErrNotAlone = errors.New("another follower publishes this shard")

// Follower publishes the embeddings of one shard.
type Follower struct {
	opts Options
	tail commitlog.Tail
	// cursor is the one in the store, as it was read or written last.
	cursor commitlog.Cursor
	// at is up to where everything is published. It is ahead of the cursor since `since`, or equal to it and since is
	// zero.
	at    commitlog.Published
	since time.Time
	// session is in every cursor that this follower writes.
	session string
	// topic is the one that is published to, as of looked.
	topic     commitlog.SinkTopic
	looked    time.Time
	lookEvery time.Duration
	// reached is the newest manifest that is known to exist.
	reached int64
	// sending: records were sent that the cursor does not cover yet.
	sending bool
	// failed: a step has failed, and the cursor was not compared with what was sent since.
	failed bool
	// touched: this step has sent records or may have moved the cursor.
	touched bool
	// switched: the last step has published a generation, and the next one has to go on from its cut.
	switched bool
	// unheard is a generation that this process did not know of when its cursor was read, since then.
	unheard struct {
		generation int64
		since      time.Time
	}
	// repeats: records after the position may have been sent already, by this follower or another.
	repeats bool
	// ahead are the newest rows of a stretch after the position that the topic may have.
	ahead   newest
	vectors vectors
	// unsavedRows and unsavedSegments were published since the cursor was saved.
	unsavedRows, unsavedSegments int
}

// New returns a Follower that continues from the shard's cursor.
func New(opts Options) *Follower {
	opts.Log = opts.Log.With("shard", opts.Shard)
	return &Follower{opts: opts, session: rand.Text(), lookEvery: lookEvery, repeats: true,
		tail: commitlog.Tail{Store: opts.Store, Shard: opts.Shard, Known: opts.Known}}
}

// lookAgain is how long a step may take without another look at the cursor after it has sent records.
const lookAgain = time.Second

// lookEvery is how often a follower asks whether the embeddings topic still has what it published.
const lookEvery = 5 * time.Second

// Run publishes until ctx ends, which is no error. When the broker or the store fails, Run retries
// with growing pauses; nothing is skipped. At the end it moves the cursor past what is published.
func (f *Follower) Run(ctx context.Context) error {
	defer f.leave(ctx)
	pause := retry.Backoff{Min: 250 * time.Millisecond, Max: 30 * time.Second}
	for {
		_, err := f.Step(ctx)
		wait := min(f.opts.Poll, f.untilSave())
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the step failed because the context has ended
		case err != nil:
			wait = pause.Next()
			f.opts.Log.Warn("embeddings cannot be published, trying again", "in", wait, "error", err)
		case f.switched:
			pause.Reset()
			continue
		default:
			pause.Reset()
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

// Step publishes a new generation as a whole, and the current one again if its vectors are to be
// published in another format, or else the manifests committed since the last step.
// It reports whether there was anything to publish.
func (f *Follower) Step(ctx context.Context) (_ bool, err error) {
	// A step that failed has left the cursor to be compared. The position in memory is all that
	// knows from where on, so this comes before anything that replaces it.
	if err := f.moveBack(ctx); err != nil {
		return false, err
	}
	var model *Model
	began := time.Now()
	f.switched, f.touched = false, false
	defer func() { f.stepped(ctx, model, err) }()
	if err = f.readCursor(ctx); err != nil {
		return false, err
	}
	if model = f.opts.Model(); model == nil {
		return false, f.saveIfDue(ctx)
	}
	// A cursor beyond the end of the log would find nothing to publish until the log has passed it.
	if f.cursor.Seq > f.reached {
		if err = f.cursor.CheckLog(ctx); err != nil {
			return false, err
		}
		f.reached = f.cursor.Seq
	}
	gone, err := f.gone(ctx)
	if err != nil {
		return false, err
	}
	if gone != "" {
		f.opts.Log.Warn("the embeddings topic does not hold what was published; all embeddings are published again",
			"because", gone)
		return true, f.switchTo(ctx, model)
	}
	if f.lags(model) {
		return false, f.saveIfDue(ctx)
	}
	if model.Generation != f.at.Generation || model.Repeats(f.at) {
		if err = f.save(ctx); err != nil {
			return false, err
		}
		if err = f.mix(ctx, model); err != nil {
			return false, err
		}
		return true, f.switchTo(ctx, model)
	}
	before := f.at.Seq
	if err = f.follow(ctx, model); err != nil {
		return false, err
	}
	if err = f.announce(ctx, model); err != nil {
		return false, err
	}
	if f.opts.Topic != nil && f.cursor.Topic == "" { // of an older version
		return f.at.Seq > before, f.advance(ctx, f.at)
	}
	if err = f.saveIfDue(ctx); err == nil && f.touched && time.Since(began) > lookAgain {
		err = f.readCursor(ctx) // it may have been frozen while it was sending
	}
	return f.at.Seq > before, err
}

// lags says whether the topic has a generation that this process has yet to hear of: another process was quicker. Rows
// of an older one would hide from the cursor that the newer one was ever there. A look that began after the cursor was
// read finds every generation that the cursor may name, unless it was deleted: then the model takes its place.
func (f *Follower) lags(model *Model) bool {
	if model.Generation >= f.at.Generation || model.replaces(f.at) {
		return false
	}
	if f.unheard.generation != f.at.Generation {
		f.unheard.generation, f.unheard.since = f.at.Generation, time.Now()
	}
	return !model.AsOf.After(f.unheard.since)
}

// follow publishes the manifests committed since the last step.
func (f *Follower) follow(ctx context.Context, model *Model) error {
	if err := f.lookAhead(ctx, model); err != nil {
		return err
	}
	if err := f.vectors.follow(ctx, f, model); err != nil {
		return err
	}
	b := &batcher{Follower: f, model: model}
	for s, err := range f.tail.SegmentsAfter(ctx, f.at.Seq) {
		if err == nil {
			err = b.add(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return b.finish(ctx)
}

// stepped looks after the cursor if a step has failed.
func (f *Follower) stepped(ctx context.Context, model *Model, err error) {
	if err == nil {
		return
	}
	f.looked, f.repeats = time.Time{}, true
	f.failed = f.touched || errors.Is(err, ErrNotAlone)
	_ = f.moveBack(ctx) // or else the next step does
	if model != nil && f.opts.Failed != nil {
		f.opts.Failed(ctx, model, err)
	}
}

// announce says that all of the shard is published with the model's generation, once. The cursor remembers it: after a
// crash in between it is said again, which is harmless.
func (f *Follower) announce(ctx context.Context, model *Model) error {
	if f.opts.Announce == nil || f.at.Generation != model.Generation || f.at.Announced == model.Generation ||
		f.catchesUp() {
		return nil
	}
	c := embedding.Completion{Generation: model.Generation, Space: cmp.Or(model.Space, model.Generation),
		Shard: f.opts.Shard, Seq: f.at.Seq}
	if c.Seq > 0 {
		head, err := commitlog.ReadManifest(ctx, f.opts.Store, c.Shard, c.Seq)
		if err != nil {
			return err
		}
		c.Nodes = head.Nodes
	}
	f.touched = true
	if err := f.opts.Announce(ctx, c); err != nil {
		return fmt.Errorf("announce that generation %d is complete: %w", c.Generation, err)
	}
	to := f.at
	to.Announced = c.Generation
	return f.advance(ctx, to)
}

// readCursor reads the cursor, which another follower may have moved meanwhile: the successor of this one, or a late
// predecessor.
func (f *Follower) readCursor(ctx context.Context) error {
	now, err := f.openCursor(ctx)
	if err != nil {
		return err
	}
	switch {
	case f.cursor.Equal(now) && !f.since.IsZero():
		return nil // this follower goes on ahead of it
	case f.sending:
		return fmt.Errorf("shard %d: %w", f.opts.Shard, ErrNotAlone)
	}
	f.repeats = f.repeats || !f.cursor.Equal(now)
	f.cursor, f.at, f.since = now, now.Published, time.Time{}
	return nil
}

func (f *Follower) openCursor(ctx context.Context) (commitlog.Cursor, error) {
	if f.opts.Keeper != nil {
		return commitlog.OpenKept(f.opts.Keeper, f.opts.Store, f.opts.Shard), nil
	}
	return f.opts.Outlet.Open(ctx, f.opts.Store, f.opts.Shard)
}

// untilSave is how long the cursor may stay behind what is published from now on. A follower that has taken over moves
// it at once, so that the one before finds out.
func (f *Follower) untilSave() time.Duration {
	switch {
	case f.since.IsZero():
		return math.MaxInt64
	case f.opts.SaveEvery == nil || f.cursor.Writer != f.session:
		return 0
	}
	return f.opts.SaveEvery() - time.Since(f.since)
}

func (f *Follower) saveIfDue(ctx context.Context) error {
	if f.untilSave() > 0 {
		return nil
	}
	return f.save(ctx)
}

// save moves the cursor past what is published.
func (f *Follower) save(ctx context.Context) error {
	if f.since.IsZero() {
		return nil
	}
	return f.advance(ctx, f.at)
}

// leave saves the cursor at the end, so that the shard's next follower sends nothing again.
func (f *Follower) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveBackTime)
	defer cancel()
	if f.failed || f.save(ctx) == nil {
		return
	}
	f.failed = true
	_ = f.moveBack(ctx) // or else the next follower sends again from the cursor on
}

// gone says why the topic does not hold what was published up to the cursor, "" if it does.
func (f *Follower) gone(ctx context.Context) (why string, err error) {
	if f.opts.Topic == nil || time.Since(f.looked) < f.lookEvery {
		return "", nil
	}
	if f.topic, err = f.opts.Topic(ctx); err != nil {
		return "", fmt.Errorf("look at the embeddings topic: %w", err)
	}
	f.looked = time.Now()
	return f.cursor.Gone(f.topic), nil
}

func (f *Follower) record(r commitlog.Row, model *Model) embedding.Record {
	return embedding.Record{NodeID: r.NodeID, Generation: model.Generation, Space: model.Space, EventTime: r.EventTime,
		Shard: f.opts.Shard, Seq: r.Seq, Deleted: r.Deleted}
}

// publish sends records of one generation that the cursor does not cover yet.
func (f *Follower) publish(ctx context.Context, model *Model, records []embedding.Record) error {
	for i, r := range records {
		records[i] = model.Format.Narrow(r)
	}
	if len(records) > 0 {
		f.sending, f.touched = true, true
	}
	return f.opts.Publisher.Publish(ctx, records)
}

// advance moves the cursor past what was sent, unless another follower has moved it.
func (f *Follower) advance(ctx context.Context, to commitlog.Published) error {
	if f.opts.Topic != nil {
		topic, err := f.opts.Topic(ctx)
		if err != nil {
			return fmt.Errorf("look at the embeddings topic: %w", err)
		}
		if topic.Name != f.topic.Name || topic.ID != f.topic.ID {
			return fmt.Errorf("shard %d: topic %q was created again while embeddings were sent to it",
				f.opts.Shard, topic.Name)
		}
		to.Topic, to.TopicID, to.End = topic.Name, topic.ID, topic.End
	}
	if to.Ahead <= to.Seq {
		to.Ahead = 0
	}
	f.touched = true
	err := f.cursor.Move(ctx, to, f.session)
	if errors.Is(err, sink.ErrChanged) {
		return fmt.Errorf("shard %d: %w: %w", f.opts.Shard, ErrNotAlone, err)
	}
	if err != nil {
		return err
	}
	f.sending, f.at, f.since = false, f.cursor.Published, time.Time{}
	f.unsavedRows, f.unsavedSegments = 0, 0
	return nil
}
