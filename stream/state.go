package stream

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	sst "github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// StateFormat is the version of the state's keys and values; a state of
// another format is refused. Format page: docs/format/state.md.
const StateFormat = 1

const (
	// stateMemTableBytes is how much of a shard's state gathers in memory before
	// it is written. The engine takes memtables out of the cache: a cache no
	// larger than they are caches nothing.
	stateMemTableBytes = 8 << 20
	// Values from this size on, which are texts, are written to files of their
	// own once, instead of again with every compaction of their keys.
	separateBytes = 128
	// How many layers of new files there may be before they are merged: each costs
	// every look-up something, but few are left to do, and merging costs more.
	stateLooseLayers = 8
	// The engine's own list of files is copied with every checkpoint.
	stateManifestBytes = 1 << 20
)

// Cache is memory that the states of several shards share: blocks read from
// disk, what has yet to be written, and what the open windows have gathered.
type Cache struct {
	blocks *pebble.Cache
	window windowMemory
}

// CacheBytes is a cache that serves the shards of one process well, be it one or
// dozens.
const CacheBytes = 192 << 20

// NewCache makes a cache of that size, open windows not counted. Release it when
// its shards are closed.
func NewCache(bytes int64) *Cache {
	return &Cache{blocks: pebble.NewCache(bytes), window: windowMemory{limit: windowMemoryBytes}}
}

// Release gives the memory back.
func (c *Cache) Release() { c.blocks.Unref() }

// state is the graph of one shard: on local disk, and in memory what has yet to
// be written there. What is in it is a function of the records below meta.Applied
// alone, and can be rebuilt from them.
type state struct {
	db      *pebble.DB
	pending pending
	meta    meta // with what is pending; on disk it is that of the last flush
	dir     string
	flushed time.Time // when flushIfDue last began a flush
}

// openState opens or creates the state in dir; want names whose it must be.
func openState(dir string, fs vfs.FS, cache *Cache, want meta, log *slog.Logger) (*state, error) {
	engine := &engineLog{log: log.With("component", "pebble"), now: time.Now}
	opts := &pebble.Options{
		MemTableSize:       stateMemTableBytes,
		FormatMajorVersion: pebble.FormatNewest,
		FS:                 fs,
		Logger:             engine,
		EventListener:      &pebble.EventListener{FlushEnd: engine.flushed},

		MaxManifestFileSize: stateManifestBytes,
		// The topics are the log. What was not flushed is behind the head, and read again.
		DisableWAL:            true,
		L0CompactionThreshold: stateLooseLayers,
	}
	if cache == nil {
		cache = NewCache(CacheBytes)
		defer cache.Release() // the engine keeps it
	}
	opts.Cache = cache.blocks
	// Texts would cost three times their share of a window's processor time to save a
	// quarter of the space, as they are packed in small blocks.
	keysOnly := *sst.FastestCompression
	keysOnly.Name, keysOnly.ValueBlocks = "giantstream keys", sst.NoCompression.DataBlocks
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.UniformDBCompressionSettings(&keysOnly) })
	opts.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: separateBytes, MaxBlobReferenceDepth: 10,
			RewriteMinimumAge: 5 * time.Minute, TargetGarbageRatio: 0.3}
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("open the state of shard %d in %s (is another process using it?): %w", want.Shard, dir, err)
	}
	s := &state{db: db, dir: dir, pending: pending{db: db, memory: &cache.window, spilled: true}}
	if err := s.load(want); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func (s *state) load(want meta) error {
	want.Format, want.Applied = StateFormat, map[string]int64{}
	s.meta = want // unless there is one
	if err := s.readMeta(); err != nil {
		return err
	}
	have := s.meta
	if have.Format != StateFormat {
		return fmt.Errorf("state in %s has format %d, this version reads %d: delete the directory to rebuild it from the log",
			s.dir, have.Format, StateFormat)
	}
	if have.Pipeline != want.Pipeline || have.Shard != want.Shard || have.Shards != want.Shards || have.Undirected != want.Undirected {
		return fmt.Errorf("state in %s %w: it is of pipeline %q, shard %d of %d, undirected %t; expected %q, shard %d of %d, undirected %t",
			s.dir, ErrIdentity, have.Pipeline, have.Shard, have.Shards, have.Undirected,
			want.Pipeline, want.Shard, want.Shards, want.Undirected)
	}
	if s.meta.Applied == nil {
		s.meta.Applied = map[string]int64{}
	}
	return nil
}

// readMeta reads the meta that is on disk, if there is one.
func (s *state) readMeta() error {
	err := lookUp(s.db, metaKey(), func(data []byte) (err error) {
		s.meta, err = decodeMeta(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the state in %s: %w", s.dir, err)
	}
	return nil
}

// setMeta puts m into the batch; it becomes s.meta when the batch is committed.
func setMeta(b *pebble.Batch, m *meta) error {
	data, err := m.encode()
	if err != nil {
		return fmt.Errorf("encode state meta: %w", err)
	}
	return b.Set(metaKey(), data, nil)
}

// ready prepares the state for changes, the first of which may take a while: all ids are read.
func (s *state) ready() (err error) {
	if s.pending.heads == nil {
		s.pending.heads, err = newHeadFilter(s.db, s.meta.Nodes)
	}
	return err
}

// spill writes what is pending, with the marks of the open window, before that
// is committed: all of it or nothing.
func (s *state) spill(window int64) error {
	b := s.db.NewBatchWithSize(s.pending.batchBytes())
	defer b.Close() //nolint:errcheck // nothing to lose: Commit reports
	s.pending.spilled = true
	return s.write(b, window)
}

// settle ends all windows up to seq, whose rows are in the commit log: what is
// pending is written, and there are no marks any more.
func (s *state) settle(seq int64, writer string) error {
	b := s.db.NewBatchWithSize(s.pending.batchBytes())
	defer b.Close() //nolint:errcheck // nothing to lose: Commit reports
	if s.pending.spilled {
		if err := b.DeleteRange(dirtyPrefix(0), dirtyPrefix(seq+1), nil); err != nil {
			return err
		}
	}
	s.meta.Committed, s.meta.Writer = seq, writer
	if err := s.write(b, 0); err != nil {
		return err
	}
	s.pending.spilled = false
	return nil
}

// flushEvery bounds how much is read again after a crash of a shard that changes
// too little to fill its memtables.
const flushEvery = time.Minute

// flushIfDue has the engine write in the background what it holds in memory.
func (s *state) flushIfDue(now time.Time) error {
	if now.Sub(s.flushed) < flushEvery {
		return nil
	}
	s.flushed = now
	if _, err := s.db.AsyncFlush(); err != nil {
		return fmt.Errorf("flush the state in %s: %w", s.dir, err)
	}
	return nil
}

// write hands the engine the batch together with what is pending and the meta.
func (s *state) write(b *pebble.Batch, marksOf int64) error {
	err := s.pending.write(b, marksOf)
	if err == nil {
		err = setMeta(b, &s.meta)
	}
	if err == nil {
		err = b.Commit(pebble.NoSync)
	}
	if err != nil {
		return fmt.Errorf("write the state in %s: %w", s.dir, err)
	}
	s.pending.forget()
	return nil
}

// closeFlushTime bounds how long close waits for a disk that takes nothing.
const closeFlushTime = 10 * time.Second

// close lets go of the files. What is pending is lost, and read again.
func (s *state) close() error {
	s.pending.forget()
	done, err := s.db.AsyncFlush()
	if err == nil {
		select {
		case <-done:
		case <-time.After(closeFlushTime):
		}
	}
	return errors.Join(err, s.db.Close())
}

// lookUp shows f a value, if there is one. It must not keep it.
func lookUp(db *pebble.DB, key []byte, f func(value []byte) error) error {
	value, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f(value), closer.Close())
}
