package stream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"

	"giantstream/sink"
)

// Directories beside the state directory, of whoever holds the state's lock.
const (
	snapshotSuffix = ".checkpoint" // hard links of a state that is being uploaded
	restoreSuffix  = ".restoring"  // a state that is being downloaded
)

// defaultTransfers is how many files of a state travel at once.
const defaultTransfers = 4

// checkpointer uploads states of one opening of a shard, one at a time.
type checkpointer struct {
	store   sink.Store
	fs      vfs.FS
	log     *slog.Logger
	clock   func() time.Time
	shard   int
	session string
	atOnce  int // files
	told    func(uploaded int64, err error)

	tried   int64         // manifest of the last attempt
	since   time.Time     // when it began, or the shard was opened
	running chan struct{} // closed when the attempt is over; nil before the first
	cancel  context.CancelFunc

	// The rest belongs to the attempt under way.
	uploads int64
	sums    map[string]fileSum    // by name, of files that never change
	fresh   map[fileSum]freshFile // uploaded by this session
	done    int64                 // manifest of the newest checkpoint known to exist
}

// fileSum tells contents apart.
type fileSum struct {
	bytes  int64
	sha256 [sha256.Size]byte
}

type freshFile struct {
	key    string
	number int64 // in the key
}

func newCheckpointer(o Options, session string) *checkpointer {
	return &checkpointer{store: o.Store, fs: o.fs, log: o.Log, clock: o.Clock, shard: o.Shard, session: session, atOnce: o.transfers,
		told: o.OnCheckpoint, since: o.Clock(), sums: map[string]fileSum{}, fresh: map[fileSum]freshFile{}}
}

// settled says whether the state is what the head manifest covers: all of it
// and nothing more, with no row due.
func (s *Shard) settled() bool {
	if s.failed != nil || s.head == nil || s.window.dirty > 0 || s.below(s.resume) || s.advanced() {
		return false
	}
	for topic, applied := range s.state.meta.Applied {
		if applied > s.head.Next[topic] {
			return false
		}
	}
	return true
}

// checkpointIfDue begins a checkpoint if it is time for one, or the end of the
// input that is being drained, and none is under way. It takes the state as it is now and uploads it in the background; what
// goes wrong is logged and tried again at the next turn.
func (s *Shard) checkpointIfDue(drained bool) {
	c := s.checkpoints
	if s.opts.CheckpointEvery <= 0 || s.headSeq() <= c.tried || c.busy() || !s.settled() {
		return
	}
	if !drained && c.clock().Sub(c.since) < s.opts.CheckpointEvery {
		return
	}
	c.tried, c.since = s.headSeq(), c.clock()
	doc, err := s.snapshot()
	if err != nil {
		c.report(doc, 0, err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.running = cancel, make(chan struct{})
	go func(running chan struct{}) {
		defer close(running)
		defer cancel()
		uploaded, err := c.upload(ctx, s.opts.Dir+snapshotSuffix, doc)
		c.report(doc, uploaded, err)
	}(c.running)
}

// Checkpoint makes a checkpoint of the state now and waits for it, unless
// there is one already or the shard does not stand at its head manifest: then
// there is nothing to do, and the next opening reads on from an older one. It
// is for a clean stop; Run makes them by itself every CheckpointEvery.
func (s *Shard) Checkpoint(ctx context.Context) error {
	c := s.checkpoints
	if err := c.wait(ctx); err != nil {
		return err
	}
	if !s.settled() || c.done >= s.headSeq() {
		return nil
	}
	c.tried, c.since = s.headSeq(), c.clock()
	var uploaded int64
	doc, err := s.snapshot()
	if err == nil {
		uploaded, err = c.upload(ctx, s.opts.Dir+snapshotSuffix, doc)
	}
	c.tell(uploaded, err)
	if err != nil {
		return fmt.Errorf("checkpoint of the state of shard %d: %w", s.opts.Shard, err)
	}
	return nil
}

// snapshot makes a copy of the state on the local disk, mostly of hard links,
// and the document for it, files and number left out.
func (s *Shard) snapshot() (*Checkpoint, error) {
	m := s.state.meta
	doc := &Checkpoint{Format: CheckpointFormat, State: StateFormat, Shard: s.opts.Shard, Seq: s.head.Seq, Writer: s.head.Writer,
		Applied: maps.Clone(m.Applied), Nodes: m.Nodes, Edges: m.Edges, Created: s.opts.Clock().UTC()}
	dir := s.opts.Dir + snapshotSuffix
	if err := s.opts.fs.RemoveAll(dir); err != nil {
		return doc, fmt.Errorf("remove an old snapshot: %w", err)
	}
	if err := s.state.spill(s.window.seq); err != nil {
		return doc, err
	}
	// Flushed, what was written since the last checkpoint is a file that later
	// checkpoints share, instead of a log that each would upload again.
	if err := s.state.db.Flush(); err != nil {
		return doc, fmt.Errorf("flush the state: %w", err)
	}
	if err := s.state.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return doc, fmt.Errorf("snapshot of the state: %w", err)
	}
	return doc, nil
}

// report is for attempts whose error nobody else gets.
func (c *checkpointer) report(doc *Checkpoint, uploaded int64, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		c.log.Warn("state checkpoint failed; the next one is tried in time", "seq", doc.Seq, "error", err)
	}
	c.tell(uploaded, err)
}

func (c *checkpointer) tell(uploaded int64, err error) {
	if c.told != nil && !errors.Is(err, context.Canceled) {
		c.told(uploaded, err)
	}
}

// busy says whether an attempt is under way.
func (c *checkpointer) busy() bool {
	if c.running == nil {
		return false
	}
	select {
	case <-c.running:
		return false
	default:
		return true
	}
}

func (c *checkpointer) wait(ctx context.Context) error {
	if c.running == nil {
		return nil
	}
	select {
	case <-c.running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends what is under way.
func (c *checkpointer) stop() {
	if c.running != nil {
		c.cancel()
		<-c.running
	}
}

// upload stores the files of a snapshot that the store does not have yet, and
// then the document that names them all. It returns how many bytes it stored,
// whether or not all went well.
//
// Other sessions may do the same at the same time, zombies included, and files
// are being collected meanwhile. What makes that safe is the number of the
// document, newest + 1, which only one can create; see doc.go, "Checkpoints".
func (c *checkpointer) upload(ctx context.Context, dir string, doc *Checkpoint) (uploaded int64, err error) {
	began := c.clock()
	kept, newest, err := keptCheckpoints(ctx, c.store, c.shard)
	if err != nil && !errors.Is(err, ErrBadCheckpoint) {
		return uploaded, err
	}
	known := map[fileSum]string{}
	for _, k := range kept {
		if c.done = max(c.done, k.Seq); k.Seq >= doc.Seq {
			return 0, c.fs.RemoveAll(dir) // there is one already, as new as this
		}
		for _, f := range k.Files {
			known[f.sum()] = f.Key
		}
	}
	for sum, f := range c.fresh {
		if f.number >= newest {
			known[sum] = f.key
		} else {
			delete(c.fresh, sum)
		}
	}
	doc.Number = newest + 1
	uploaded, err = c.files(ctx, dir, doc, known)
	if err != nil {
		return uploaded, err
	}
	data, err := doc.encode()
	if err != nil {
		return uploaded, err
	}
	if err := c.store.Create(ctx, checkpointKey(doc.Shard, doc.Number), data); err != nil {
		return uploaded, err
	}
	c.done = doc.Seq
	c.log.Info("state checkpoint made", "seq", doc.Seq, "number", doc.Number, "files", len(doc.Files), "bytes", doc.Bytes(),
		"uploaded", uploaded, "took", c.clock().Sub(began))
	return uploaded, c.fs.RemoveAll(dir)
}

// files fills in doc.Files and uploads those that are not known.
func (c *checkpointer) files(ctx context.Context, dir string, doc *Checkpoint, known map[fileSum]string) (sent int64, err error) {
	names, err := c.fs.List(dir)
	if err != nil {
		return 0, fmt.Errorf("list the snapshot: %w", err)
	}
	c.forget(names)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.atOnce)
	var uploads []*upload
	for _, name := range names {
		var sum fileSum
		if sum, err = c.sum(dir, name); err != nil {
			break
		}
		key, ok := known[sum]
		if !ok {
			u := &upload{sum: sum, key: stateFileKey(c.shard, doc.Number, c.session, c.uploads)}
			c.uploads++
			key, known[sum] = u.key, u.key
			uploads = append(uploads, u)
			g.Go(func() error {
				err := c.put(gctx, dir, name, u.key, sum)
				u.stored = err == nil
				return err
			})
		}
		doc.Files = append(doc.Files, CheckpointFile{Name: name, Key: key, Bytes: sum.bytes, SHA256: hex.EncodeToString(sum.sha256[:])})
	}
	err = errors.Join(err, g.Wait())
	for _, u := range uploads {
		if u.stored {
			sent += u.sum.bytes
			c.fresh[u.sum] = freshFile{u.key, doc.Number}
		}
	}
	return sent, err
}

// upload is a file on its way to the store.
type upload struct {
	sum    fileSum
	key    string
	stored bool
}

// forget drops the sums of files that the state no longer has.
func (c *checkpointer) forget(names []string) {
	have := make(map[string]bool, len(names))
	for _, name := range names {
		have[name] = true
	}
	maps.DeleteFunc(c.sums, func(name string, _ fileSum) bool { return !have[name] })
}

// sum reads a file of the snapshot. Tables and values never change under their
// name, and are read once.
func (c *checkpointer) sum(dir, name string) (fileSum, error) {
	fixed := strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
	if s, ok := c.sums[name]; ok && fixed {
		return s, nil
	}
	f, err := c.fs.Open(filepath.Join(dir, name), vfs.SequentialReadsOption)
	if err != nil {
		return fileSum{}, fmt.Errorf("read the snapshot: %w", err)
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fileSum{}, fmt.Errorf("read the snapshot: %w", err)
	}
	s := fileSum{bytes: n, sha256: [sha256.Size]byte(h.Sum(nil))}
	if fixed {
		c.sums[name] = s
	}
	return s, nil
}

func (c *checkpointer) put(ctx context.Context, dir, name, key string, sum fileSum) error {
	f, err := c.fs.Open(filepath.Join(dir, name), vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("read the snapshot: %w", err)
	}
	content := sink.Summed{SectionReader: io.NewSectionReader(f, 0, sum.bytes), SHA256: sum.sha256}
	return errors.Join(c.store.Put(ctx, key, content, sum.bytes), f.Close())
}

func (f *CheckpointFile) sum() (s fileSum) {
	s.bytes = f.Bytes
	_, _ = hex.Decode(s.sha256[:], []byte(f.SHA256)) // checked when it was read
	return s
}

// keepCheckpoints is how many of the newest checkpoints are kept.
const keepCheckpoints = 2

// keptCheckpoints reads the newest keepCheckpoints documents, oldest first, and
// returns the number of the newest, 0 if there is none. With ErrBadCheckpoint,
// one of them cannot be read and is missing.
func keptCheckpoints(ctx context.Context, store sink.Store, shard int) (kept []*Checkpoint, newest int64, err error) {
	numbers, err := checkpointNumbers(ctx, store, shard)
	if err != nil || len(numbers) == 0 {
		return nil, 0, err
	}
	var bad error
	for _, number := range numbers[max(0, len(numbers)-keepCheckpoints):] {
		c, err := readCheckpoint(ctx, store, shard, number)
		switch {
		case errors.Is(err, ErrBadCheckpoint):
			bad = err
		case err != nil:
			return nil, 0, err
		default:
			kept = append(kept, c)
		}
	}
	return kept, numbers[len(numbers)-1], bad
}
