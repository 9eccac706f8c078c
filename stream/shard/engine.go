package shard

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	sst "github.com/cockroachdb/pebble/v2/sstable/block"
)

const (
	// stateMemTableBytes is how much of a shard's state gathers in memory before it is written. A
	// batch of more than half a memtable is flushed by itself: windows under load should be smaller.
	stateMemTableBytes = 16 << 20
	// stateMemTables is how many memtables a state has under load: one is filled while the other is
	// written.
	stateMemTables = 2
	// stateTableBytes is the size at which a flush begins a new table, and with it a new file of
	// values; merged tables may be twice as large. The values that a table refers to count, so with
	// small tables most files would hold a few hundred keys.
	stateTableBytes = 16 << 20
	// Values from this size on, which are texts, lie in separate files: compactions of their keys
	// do not rewrite them.
	separateBytes = 128
	// How many layers of new files there may be before they are merged. Each layer slows down every
	// look-up, but pending and keyFilter leave few look-ups to the engine, and merging costs more.
	stateLooseLayers = 16
	// Bounds the engine's own list of files, which every checkpoint copies.
	stateManifestBytes = 1 << 20
)

// Cache is memory that the states of several shards share, for blocks read from disk and open windows.
// Memtables come on top.
type Cache struct {
	blocks *pebble.Cache
	window windowMemory
}

// cacheBytes is for blocks that were read. Links and texts of nodes that get new links are read all the
// time.
const cacheBytes = 64 << 20

// NewCache makes a cache for the shards of one process. Release it when they are closed.
func NewCache() *Cache {
	return &Cache{blocks: pebble.NewCache(cacheBytes), window: windowMemory{limit: windowMemoryBytes}}
}

// LimitWindows sets how many bytes the open windows of all shards may take, before the first shard is
// opened; the default is 48 MiB.
func (c *Cache) LimitWindows(bytes int64) { c.window.limit = bytes }

// addMemTables makes room for the memtables of one more state. The engine takes them out of the cache,
// and those of a few shards would leave nothing for blocks. The room is given back by the function
// returned, while the state still has the cache.
func (c *Cache) addMemTables() (giveBack func()) {
	return c.blocks.Reserve(-stateMemTables * stateMemTableBytes)
}

// Release gives the memory back.
func (c *Cache) Release() { c.blocks.Unref() }

// openEngine opens or creates the database in dir, with all failures going to guard.
func openEngine(dir string, fs *engineFS, guard *engineGuard, cache *Cache, log *slog.Logger) (*pebble.DB, error) {
	engine := &engineLog{log: log.With("component", "pebble"), now: time.Now, fatal: guard.fatal}
	opts := &pebble.Options{
		MemTableSize:       stateMemTableBytes,
		FormatMajorVersion: pebble.FormatNewest,
		FS:                 fs,
		Logger:             engine,
		EventListener:      guard.listener(engine),
		Cache:              cache.blocks,

		MaxManifestFileSize: stateManifestBytes,
		// The topics are the log. What was not flushed is read from them again.
		DisableWAL:            true,
		L0CompactionThreshold: stateLooseLayers,
		L0StopWritesThreshold: 2 * stateLooseLayers,
	}
	// Compressed in small blocks, texts would take a quarter less space, at three times their share
	// of a window's processor time.
	keysOnly := *sst.FastestCompression
	keysOnly.Name, keysOnly.ValueBlocks = "giantstream keys", sst.NoCompression.DataBlocks
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings {
		return pebble.UniformDBCompressionSettings(&keysOnly)
	})
	opts.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: separateBytes, MaxBlobReferenceDepth: 10,
			RewriteMinimumAge: 5 * time.Minute, TargetGarbageRatio: 0.3}
	}
	opts.TargetFileSizes[0] = stateTableBytes
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return pebble.Open(dir, opts)
}
