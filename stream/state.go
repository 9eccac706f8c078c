package stream

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
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
	// The engine's own list of files is copied with every checkpoint.
	stateManifestBytes = 1 << 20
)

// Cache is memory that the states of several shards share: blocks read from
// disk and what has yet to be written.
type Cache struct{ blocks *pebble.Cache }

// CacheBytes is a cache that serves the shards of one process well, be it one or
// dozens.
const CacheBytes = 192 << 20

// NewCache makes a cache of that size. Release it when its shards are closed.
func NewCache(bytes int64) *Cache { return &Cache{pebble.NewCache(bytes)} }

// Release gives the memory back.
func (c *Cache) Release() { c.blocks.Unref() }

// state is the graph of one shard on local disk. What is in it is a function
// of the records below meta.Applied alone, and can be rebuilt from them.
type state struct {
	db   *pebble.DB
	meta meta
	dir  string
}

// openState opens or creates the state in dir; want names whose it must be.
func openState(dir string, fs vfs.FS, cache *Cache, want meta, log *slog.Logger) (*state, error) {
	opts := &pebble.Options{
		MemTableSize:       stateMemTableBytes,
		FormatMajorVersion: pebble.FormatNewest,
		FS:                 fs,
		Logger:             &engineLog{log: log.With("component", "pebble"), now: time.Now},

		MaxManifestFileSize: stateManifestBytes,
	}
	if cache == nil {
		cache = NewCache(CacheBytes)
		defer cache.Release() // the engine keeps it
	}
	opts.Cache = cache.blocks
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
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
	s := &state{db: db, dir: dir}
	if err := s.load(want); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func (s *state) load(want meta) error {
	data, ok, err := get(s.db, metaKey())
	if err != nil {
		return fmt.Errorf("read the state in %s: %w", s.dir, err)
	}
	if !ok {
		want.Format = StateFormat
		want.Applied = map[string]int64{}
		s.meta = want
		return nil
	}
	if s.meta, err = decodeMeta(data); err != nil {
		return fmt.Errorf("state in %s: %w", s.dir, err)
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

// setMeta puts m into the batch; it becomes s.meta when the batch is committed.
func setMeta(b *pebble.Batch, m *meta) error {
	data, err := m.encode()
	if err != nil {
		return fmt.Errorf("encode state meta: %w", err)
	}
	return b.Set(metaKey(), data, nil)
}

func (m *meta) clone() meta {
	c := *m
	c.Applied = maps.Clone(m.Applied)
	return c
}

// sync makes everything applied so far survive a crash of the machine.
func (s *state) sync() error {
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		return fmt.Errorf("sync the state in %s: %w", s.dir, err)
	}
	return nil
}

func (s *state) close() error { return s.db.Close() }

// get copies a value out.
func get(r pebble.Reader, key []byte) (value []byte, ok bool, err error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	value = append([]byte(nil), v...)
	return value, true, closer.Close()
}
