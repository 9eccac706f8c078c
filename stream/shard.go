package stream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
)

// Errors that callers of a Shard test. After any error a Shard does nothing
// more: close it and open it again, it resumes from the commit log.
var (
	// ErrFenced: another worker has committed to this shard. It owns the
	// shard now; nothing is lost, and this worker must not write again.
	ErrFenced = errors.New("shard is owned by another worker")
	// ErrLogIncomplete: the state must be rebuilt, and the input topics no
	// longer hold the records for it.
	ErrLogIncomplete = errors.New("input topics do not hold what the commit log covers")
)

// Mirror carries assertions of an undirected graph to the shards of the far
// ends.
type Mirror interface {
	// Publish hands over mirror mutations (MirrorPut, MirrorDelete), to be
	// routed by ID. It may buffer and keeps the slice.
	Publish(ctx context.Context, assertions []Mutation) error
	// Flush returns when everything published is durable.
	Flush(ctx context.Context) error
}

// Featurizer fills in what the current generation says about a row:
// FeatureIndices, FeatureValues, Targets, TargetCounts and Generation, from
// Text and Labels. Before the first generation it leaves the row alone.
// Deleted rows are not shown to it.
type Featurizer interface {
	Featurize(row *rows.Row) error
}

// Topics names the inputs as they appear in Batch.Next.
type Topics struct {
	Nodes  string // Version.Rank 0
	Edges  string // Version.Rank 1
	Mirror string // "" for directed graphs
}

// Options of a Shard.
type Options struct {
	Pipeline      string // Identity.Name
	Shard, Shards int
	// Dir holds the graph state of this shard and nothing else. It may be
	// lost at any time at the price of reading the input again, from where
	// the newest checkpoint stands. Directories beside it, of its name with an
	// ending, hold copies on their way from and to the store.
	Dir   string
	Store sink.Store
	// Cache is shared with other shards of the process; nil for one of its
	// own. It must outlive the shard.
	Cache  *Cache
	Topics Topics
	Window Window
	// Compression of the rows of a window; "" is Zstandard.
	Compression parquetio.Compression
	// Mirror is nil for directed graphs.
	Mirror Mirror
	// Featurizer may be nil.
	Featurizer Featurizer
	// Writer names the process for people who read manifests. The shard
	// appends random digits, so that no two openings share a name.
	Writer string
	// CheckpointEvery is how often Run copies the state to the store; 0 is
	// never.
	CheckpointEvery time.Duration
	// MaxObjectRows splits a window's rows into objects; 0 means 50,000.
	MaxObjectRows int64
	// Drain, if set, is asked after every batch whether windows should be
	// committed as soon as the feed is caught up, without waiting for more.
	Drain func() bool
	// OnCommit, if set, sees every manifest this shard has committed, in
	// order, on the goroutine that committed it.
	OnCommit func(*Manifest)
	// OnCheckpoint, if set, is told of every attempt to copy the state to the
	// store: how many bytes it uploaded, and what went wrong. Attempts cut off
	// by the shard's own end are left out. One call at a time, on any goroutine.
	OnCheckpoint func(uploaded int64, err error)
	Clock        func() time.Time // time.Now if nil
	Log          *slog.Logger     // discarded if nil
	Rand         io.Reader        // crypto/rand if nil

	fs        vfs.FS        // tests: a file system that forgets
	backoff   time.Duration // tests: first pause between tries of the commit
	transfers int           // tests: one file at a time, so that calls have an order
}

const (
	defaultObjectRows = 50_000
	commitBackoff     = 100 * time.Millisecond
)

func (o Options) withDefaults() (Options, error) {
	if o.Shards < 1 || o.Shard < 0 || o.Shard >= o.Shards {
		return o, fmt.Errorf("shard %d of %d does not exist", o.Shard, o.Shards)
	}
	if o.Store == nil || o.Dir == "" {
		return o, fmt.Errorf("shard %d needs a store and a state directory", o.Shard)
	}
	if o.Topics.Nodes == "" || (o.Mirror != nil) != (o.Topics.Mirror != "") {
		return o, fmt.Errorf("shard %d needs the name of the nodes topic, and a mirror with its topic's name or neither", o.Shard)
	}
	o.Window = o.Window.withDefaults()
	if o.fs == nil {
		o.fs = vfs.Default
	}
	if o.MaxObjectRows <= 0 {
		o.MaxObjectRows = defaultObjectRows
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.backoff <= 0 {
		o.backoff = commitBackoff
	}
	if o.transfers <= 0 {
		o.transfers = defaultTransfers
	}
	o.Log = o.Log.With("shard", o.Shard)
	return o, nil
}

// Shard is the worker of one partition of the graph: it applies mutations to
// the state, gathers what they change in windows, and commits each window to
// the object store exactly once. It is not safe for concurrent use.
type Shard struct {
	opts  Options
	state *state
	// head is the newest manifest, nil before the first.
	head *Manifest
	// covered holds the head's offsets at the time of opening: records
	// below them are in committed rows already.
	covered map[string]int64
	// position is what this Shard itself has consumed up to.
	position map[string]int64
	// resume is how far every topic must be consumed before anything may be
	// committed: to what the head covers, and to what the state holds.
	resume  map[string]int64
	window  openWindow
	session string // unique to this opening
	objects int64  // objects written in this session
	failed  error  // the error that ended this Shard

	checkpoints *checkpointer
}

// OpenShard reads the head of the shard's commit log, opens the local state
// and brings the two together.
func OpenShard(ctx context.Context, opts Options) (*Shard, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	var random [6]byte
	if _, err := io.ReadFull(opts.Rand, random[:]); err != nil {
		return nil, fmt.Errorf("draw a session id: %w", err)
	}
	// Before the head: so that none of them stands beyond it.
	checkpoints, err := checkpointNumbers(ctx, opts.Store, opts.Shard)
	if err != nil {
		return nil, err
	}
	head, err := Head(ctx, opts.Store, opts.Shard)
	if err != nil {
		return nil, fmt.Errorf("find where shard %d stands: %w", opts.Shard, err)
	}
	st, err := openState(opts.Dir, opts.fs, opts.Cache, meta{
		Pipeline: opts.Pipeline, Shard: opts.Shard, Shards: opts.Shards, Undirected: opts.Mirror != nil,
	}, opts.Log)
	if err != nil {
		return nil, err
	}
	if st, err = restore(ctx, opts, st, head, checkpoints); err != nil {
		return nil, err
	}
	s := &Shard{opts: opts, state: st, head: head, session: hex.EncodeToString(random[:])}
	s.checkpoints = newCheckpointer(opts, s.session)
	if err := s.reconcile(ctx); err != nil {
		return nil, errors.Join(err, st.close())
	}
	return s, nil
}

func (s *Shard) headSeq() int64 {
	if s.head == nil {
		return 0
	}
	return s.head.Seq
}

// reconcile decides what the dirty marks found in the state are worth, and
// where to read on. See doc.go, "Restart".
func (s *Shard) reconcile(ctx context.Context) error {
	if err := s.checkLineage(ctx); err != nil {
		return err
	}
	s.covered, s.position, s.resume = map[string]int64{}, map[string]int64{}, map[string]int64{}
	writer := ""
	if s.head != nil {
		s.covered, writer = s.head.Next, s.head.Writer
	}
	maps.Copy(s.resume, s.covered)
	ahead := false // does the state hold records that no manifest covers?
	for topic, applied := range s.state.meta.Applied {
		ahead = ahead || applied > s.covered[topic]
		s.resume[topic] = max(s.resume[topic], applied)
		if next, ok := s.covered[topic]; ok {
			s.position[topic] = min(applied, next)
		}
	}
	seq := s.headSeq()
	if !ahead {
		if err := s.state.dropMarks(); err != nil {
			return err
		}
	} else if s.state.meta.Committed < seq {
		if err := s.state.promoteMarks(seq + 1); err != nil {
			return err
		}
	}
	if err := s.state.settle(seq, writer); err != nil {
		return err
	}
	return s.beginWindow()
}

// checkLineage refuses a state that was built beside another commit log.
func (s *Shard) checkLineage(ctx context.Context) error {
	have := s.state.meta
	if have.Committed == 0 {
		return nil
	}
	hint := fmt.Sprintf("point to the right store, or delete %s to rebuild the state from the input topics", s.opts.Dir)
	if have.Committed > s.headSeq() {
		return fmt.Errorf("state of shard %d %w: it has seen manifest %d, but the commit log in %s ends at %d; %s",
			s.opts.Shard, ErrIdentity, have.Committed, s.opts.Store.URL(), s.headSeq(), hint)
	}
	writer, err := s.opts.writerOf(ctx, s.head, have.Committed)
	if err != nil {
		return err
	}
	if writer != have.Writer {
		return fmt.Errorf("state of shard %d %w: manifest %d in %s was written by %q, the state knows it from %q; %s",
			s.opts.Shard, ErrIdentity, have.Committed, s.opts.Store.URL(), writer, have.Writer, hint)
	}
	return nil
}

// writerOf tells who wrote manifest seq, which is not beyond head.
func (o *Options) writerOf(ctx context.Context, head *Manifest, seq int64) (string, error) {
	if seq == head.Seq {
		return head.Writer, nil
	}
	m, err := readManifest(ctx, o.Store, o.Shard, seq)
	if err != nil {
		return "", err
	}
	return m.Writer, nil
}

func (s *Shard) beginWindow() error {
	n, err := s.state.countMarks(s.headSeq() + 1)
	if err != nil {
		return err
	}
	s.window = openWindow{seq: s.headSeq() + 1, dirty: n}
	s.state.pending.spilled = true
	if n > 0 {
		s.window.since = s.opts.Clock()
	}
	return nil
}

// Next returns for each topic the offset at which the feed must start. A
// topic that is missing starts at its first offset.
func (s *Shard) Next() map[string]int64 { return maps.Clone(s.position) }

// below says whether some topic has yet to be consumed up to the offsets given.
func (s *Shard) below(offsets map[string]int64) bool {
	for topic, offset := range offsets {
		if s.position[topic] < offset {
			return true
		}
	}
	return false
}

// Apply enters a batch into the state. After an error nothing of it is there at
// the next opening.
func (s *Shard) Apply(ctx context.Context, batch Batch) error {
	if s.failed != nil {
		return s.failed
	}
	if len(batch.Mutations) == 0 && !s.moves(batch.Next) {
		return nil
	}
	if err := s.apply(ctx, batch); err != nil {
		s.failed = fmt.Errorf("shard %d: apply: %w", s.opts.Shard, err)
		return s.failed
	}
	return nil
}

func (s *Shard) moves(next map[string]int64) bool {
	for topic, offset := range next {
		if have, ok := s.position[topic]; !ok || offset > have {
			return true
		}
	}
	return false
}

func (s *Shard) apply(ctx context.Context, batch Batch) error {
	if err := s.state.ready(); err != nil {
		return err
	}
	c := &change{known: &s.state.pending, window: s.window.seq, mirror: s.opts.Mirror, eager: s.below(s.covered)}
	for i := range batch.Mutations {
		m := &batch.Mutations[i]
		c.covered = s.isCovered(m, batch.Next)
		if err := c.apply(ctx, m); err != nil {
			return err
		}
	}
	if err := c.handOver(ctx); err != nil {
		return err
	}
	meta := &s.state.meta
	meta.Nodes += c.nodes
	meta.Edges += c.edges
	for topic, next := range batch.Next {
		meta.Applied[topic] = max(meta.Applied[topic], next)
		s.position[topic] = max(s.position[topic], next)
	}
	s.window.dirty += c.dirty
	s.window.bytes += batch.Bytes
	if s.window.since.IsZero() {
		s.window.since = s.opts.Clock()
	}
	// What the head covers is written once all of it is here: no commit follows.
	if s.state.pending.over() || c.eager && !s.below(s.covered) {
		return s.state.spill(s.window.seq)
	}
	return nil
}

// isCovered says whether a mutation's record lies below the offsets of the
// manifest that was the head when the shard was opened. Mirrored assertions
// carry the offset of the original record, so they are judged by their batch;
// a batch across the boundary counts as new, which costs some rows written
// again.
func (s *Shard) isCovered(m *Mutation, next map[string]int64) bool {
	t := s.opts.Topics
	switch {
	case m.Op == MirrorPut || m.Op == MirrorDelete:
		offset, ok := next[t.Mirror]
		return ok && offset <= s.covered[t.Mirror]
	case m.Version.Rank == 0:
		return m.Version.Offset < s.covered[t.Nodes]
	}
	return m.Version.Offset < s.covered[t.Edges]
}

// Close lets go of the state. What is not committed is read again next time.
func (s *Shard) Close() error {
	if s.failed == nil {
		s.failed = errors.New("shard is closed")
	}
	s.checkpoints.stop()
	if err := s.state.close(); err != nil {
		return fmt.Errorf("close the state of shard %d: %w", s.opts.Shard, err)
	}
	return nil
}
