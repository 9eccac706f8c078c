package engine

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	sst "github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// tableBytes is the size at which a flush begins a new table, and with it a new file of
	// values; merged tables may be twice as large. The values that a table refers to count, so with
	// small tables most files would hold a few hundred keys.
	tableBytes = 16 << 20
	// Values from this size on, which are texts, lie in separate files: compactions of their keys
	// do not rewrite them.
	separateBytes = 128
	// How many layers of new files there may be before they are merged. Each layer slows down every
	// look-up, but the shard's pending changes and key filters leave few look-ups to the engine,
	// and merging costs more.
	looseLayers = 16
	// Bounds the engine's own list of files, which every checkpoint copies.
	manifestBytes = 1 << 20
)

// Open opens or creates the database in dir, with all failures going to guard. memTable is the size
// of one of its two memtables, in bytes.
func Open(dir string, fs *FS, guard *Guard, cache *pebble.Cache, memTable int, log *slog.Logger) (*pebble.DB, error) {
	logs := &logger{log: log.With("component", "pebble"), now: time.Now, fatal: guard.fatal}
	opts := &pebble.Options{
		MemTableSize:       uint64(memTable),
		FormatMajorVersion: pebble.FormatNewest,
		FS:                 fs,
		Logger:             logs,
		EventListener:      guard.listener(logs),
		Cache:              cache,

		MaxManifestFileSize: manifestBytes,
		// The topics are the log. What was not flushed is read from them again.
		DisableWAL:            true,
		L0CompactionThreshold: looseLayers,
		L0StopWritesThreshold: 2 * looseLayers,
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
	opts.TargetFileSizes[0] = tableBytes
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return pebble.Open(dir, opts)
}

// OpenToRead opens the database in dir read-only. A failure is an error or a panic.
func OpenToRead(dir string, disk vfs.FS) (*pebble.DB, error) {
	return pebble.Open(dir, &pebble.Options{ReadOnly: true, ErrorIfNotExists: true, FS: disk,
		Logger: &logger{log: slog.New(slog.DiscardHandler), now: time.Now,
			fatal: func(message string) { panic(message) }},
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}})
}
