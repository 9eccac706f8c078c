package shard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"

	"giantstream/sink"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard/engine"
)

// checkpointer uploads the states of one session of a shard, one at a time.
type checkpointer struct {
	store    sink.Store
	fs       vfs.FS
	log      *slog.Logger
	clock    func() time.Time
	shard    int
	session  string
	atOnce   int // files
	listener Listener

	attempted int64         // manifest of the last attempt
	since     time.Time     // when the last attempt began, or the shard was opened
	running   chan struct{} // closed when the attempt is over; nil before the first
	cancel    context.CancelFunc

	// The rest belongs to the running attempt.
	uploads int64
	sums    map[string]fileSum // of files that never change, by name
	// intact returns an error if a snapshot is not what the engine wrote, or not what its document
	// says. Its files of keys or values have these CRC-32C. It may trust the files that are in an
	// older checkpoint under the same name. nil: not checked.
	intact func(dir string, doc *checkpoint.Document, crcs map[string]uint32, trusted map[string]bool) error
	crcs   map[string]uint32     // of files of keys or values, by name
	fresh  map[fileSum]freshFile // uploaded by this session
	done   int64                 // manifest of the newest checkpoint known to exist
}

type freshFile struct {
	key    string
	number int64 // in the key
}

func newCheckpointer(o Options, session string) *checkpointer {
	return &checkpointer{
		store: o.Store, fs: o.fs, log: o.Log, clock: o.Clock, shard: o.Shard, session: session, atOnce: o.transfers,
		listener: o.Listener, since: o.Clock(),
		sums: map[string]fileSum{}, crcs: map[string]uint32{}, fresh: map[fileSum]freshFile{},
	}
}

// snapshot copies the state to dir, with the marks of the open window.
func (s *state) snapshot(dir string, window int64) error {
	if err := s.fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove an old snapshot: %w", err)
	}
	if err := s.checkSpace(stateReserveBytes); err != nil {
		return err
	}
	if err := s.spill(window); err != nil {
		return err
	}
	// A flush puts what was written since the last checkpoint into files that later checkpoints
	// share.
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flush the state: %w", engine.Failure(err))
	}
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("snapshot of the state: %w", engine.Failure(err))
	}
	return nil
}

// report logs the error of an attempt that has no caller to return it to.
func (c *checkpointer) report(doc *checkpoint.Document, uploaded int64, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		c.log.Warn("state checkpoint failed; the next one is tried in time", "seq", doc.Seq, "error", err)
	}
	c.notify(uploaded, err)
}

func (c *checkpointer) notify(uploaded int64, err error) {
	if !errors.Is(err, context.Canceled) {
		c.listener.Checkpointed(uploaded, err)
	}
}

// busy reports whether an attempt is running.
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

// stop cancels a running attempt and waits for its end.
func (c *checkpointer) stop() {
	if c.running != nil {
		c.cancel()
		<-c.running
	}
}

// upload stores the files of a snapshot that the store does not have yet, and then the document
// that names all files. It returns how many bytes it has stored, also with an error.
//
// Other sessions may do the same at the same time, fenced ones included, while files are being
// collected. This is safe because of the document's number, newest + 1, which only one session can
// create; see commitlog, "Checkpoints".
func (c *checkpointer) upload(ctx context.Context, dir string, doc *checkpoint.Document) (uploaded int64, err error) {
	began := c.clock()
	kept, newest, err := checkpoint.Kept(ctx, c.store, c.shard)
	if err != nil && !errors.Is(err, checkpoint.ErrBad) {
		return uploaded, err
	}
	known, trusted := map[fileSum]string{}, map[string]fileSum{}
	for _, k := range kept {
		if c.done = max(c.done, k.Seq); k.Seq >= doc.Seq {
			return 0, c.fs.RemoveAll(dir) // there is a checkpoint as new as this
		}
		for _, f := range k.Files {
			known[sumOf(&f)], trusted[f.Name] = f.Key, sumOf(&f)
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
	uploaded, err = c.files(ctx, dir, doc, known, trusted)
	if err != nil {
		return uploaded, err
	}
	if err := checkpoint.Create(ctx, c.store, doc); err != nil {
		return uploaded, err
	}
	c.done = doc.Seq
	c.log.Info("state checkpoint made", "seq", doc.Seq, "number", doc.Number, "files", len(doc.Files),
		"bytes", doc.Bytes(), "uploaded", uploaded, "took", c.clock().Sub(began))
	return uploaded, c.fs.RemoveAll(dir)
}

// files fills in doc.Files and uploads the files whose content is not known. trusted are the files of
// older checkpoints by name.
func (c *checkpointer) files(ctx context.Context, dir string, doc *checkpoint.Document,
	known map[fileSum]string, trusted map[string]fileSum) (sent int64, err error) {
	names, err := c.fs.List(dir)
	if err != nil {
		return 0, fmt.Errorf("list the snapshot: %w", err)
	}
	c.forget(names)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.atOnce)
	var uploads []*upload
	same := map[string]bool{}
	for _, name := range names {
		var sum fileSum
		if sum, err = c.sum(dir, name); err != nil {
			break
		}
		same[name] = trusted[name] == sum
		key, ok := known[sum]
		if !ok {
			u := &upload{sum: sum, key: checkpoint.FileKey(c.shard, doc.Number, c.session, c.uploads)}
			c.uploads++
			key, known[sum] = u.key, u.key
			uploads = append(uploads, u)
			g.Go(func() error {
				err := c.put(gctx, dir, name, u.key, sum)
				u.stored = err == nil
				return err
			})
		}
		doc.Files = append(doc.Files, checkpoint.File{Name: name, Key: key, Bytes: sum.bytes,
			SHA256: hex.EncodeToString(sum.sha256[:])})
	}
	if err == nil && c.intact != nil { // what was uploaded already is an orphan without the document
		err = c.intact(dir, doc, c.crcs, same)
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
	maps.DeleteFunc(c.crcs, func(name string, _ uint32) bool { return !have[name] })
}

// sum returns the sum of a file of the snapshot. Tables and values never change under their name,
// so they are read once.
func (c *checkpointer) sum(dir, name string) (fileSum, error) {
	fixed := engine.IsData(name)
	if s, ok := c.sums[name]; ok && fixed {
		return s, nil
	}
	f, err := c.fs.Open(filepath.Join(dir, name), vfs.SequentialReadsOption)
	if err != nil {
		return fileSum{}, fmt.Errorf("read the snapshot: %w", err)
	}
	h, crc := sha256.New(), crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.Copy(io.MultiWriter(h, crc), f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fileSum{}, fmt.Errorf("read the snapshot: %w", err)
	}
	s := fileSum{bytes: n, sha256: [sha256.Size]byte(h.Sum(nil))}
	if fixed {
		c.sums[name], c.crcs[name] = s, crc.Sum32()
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

// intact checks a snapshot that is about to become a checkpoint, because a checkpoint replaces the
// older one and lets the topics forget records. Files of keys or values that this engine wrote must
// still have the checksum of then. The snapshot must open, and stand where the document says: that
// checks the files by which the engine finds the others. If a file of keys or values is older than
// the engine and not in an older checkpoint, all keys and values are read as well. A difference ends
// the use of the state.
func (s *state) intact(dir string, doc *checkpoint.Document, crcs map[string]uint32, trusted map[string]bool) error {
	older := false
	for name, crc := range crcs {
		written, ok := s.fs.Sum(name)
		if ok && written != crc {
			s.guard.Fail(fmt.Errorf("%w: %s has changed since it was written", engine.ErrDamaged, name))
			return s.guard.Failure()
		}
		older = older || !ok && !trusted[name]
	}
	guard := engine.NewGuard(s.grace)
	err := guard.Run(context.Background(), func(context.Context) error {
		return checkSnapshot(s.fs.FS, dir, doc, older)
	})
	if errors.Is(err, engine.ErrDamaged) {
		s.guard.Fail(err)
	}
	return err
}

// checkSnapshot opens a snapshot and compares it with its document. If everything is to be read, it
// reads all tables block by block, and all values that a key names.
func checkSnapshot(disk vfs.FS, dir string, doc *checkpoint.Document, everything bool) (err error) {
	if everything {
		if err := engine.ReadTables(disk, dir); err != nil {
			return err
		}
	}
	if err := engine.CheckManifest(disk, dir); err != nil {
		return err
	}
	db, err := engine.OpenToRead(dir, disk)
	if err != nil {
		return engine.Failure(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var have meta
	err = lookUp(db, metaKey(), func(data []byte) (err error) {
		have, err = decodeMeta(data)
		return err
	})
	if err == nil {
		err = have.agrees(doc)
	}
	if err != nil {
		return engine.Failure(fmt.Errorf("snapshot of the state: %w", err))
	}
	if !everything {
		return nil
	}
	it, err := db.NewIter(nil)
	if err != nil {
		return engine.Failure(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if _, err := it.ValueAndErr(); err != nil {
			return engine.Failure(err)
		}
	}
	return engine.Failure(it.Error())
}

// agrees compares a state with the document of its checkpoint.
func (m *meta) agrees(doc *checkpoint.Document) error {
	if m.Committed == doc.Seq && m.Writer == doc.Writer && maps.Equal(m.Applied, doc.Applied) {
		return nil
	}
	return fmt.Errorf("it stands at manifest %d of %q and offsets %v, the checkpoint's document says %d, %q and %v",
		m.Committed, m.Writer, m.Applied, doc.Seq, doc.Writer, doc.Applied)
}
