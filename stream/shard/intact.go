package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/stream/commitlog"
)

// intact checks a snapshot that is about to become a checkpoint, because a checkpoint replaces the
// older one and lets the topics forget records. Files of keys or values that this engine wrote must
// still have the checksum of then. The snapshot must open, and stand where the document says: that
// checks the files by which the engine finds the others. If a file of keys or values is older than
// the engine and not in an older checkpoint, all keys and values are read as well. A difference ends
// the use of the state.
func (s *state) intact(dir string, doc *commitlog.Checkpoint, crcs map[string]uint32, trusted map[string]bool) error {
	older := false
	for name, crc := range crcs {
		written, ok := s.fs.sum(name)
		if ok && written != crc {
			s.guard.fail(fmt.Errorf("%w: %s has changed since it was written", ErrStateDamaged, name))
			return s.guard.failure()
		}
		older = older || !ok && !trusted[name]
	}
	guard := newEngineGuard(s.guard.grace)
	err := guard.run(context.Background(), func(context.Context) error {
		return checkSnapshot(s.fs.FS, dir, doc, older)
	})
	if errors.Is(err, ErrStateDamaged) {
		s.guard.fail(err)
	}
	return err
}

// checkSnapshot opens a snapshot and compares it with its document. If everything is to be read, it
// reads all tables block by block, and all values that a key names.
func checkSnapshot(disk vfs.FS, dir string, doc *commitlog.Checkpoint, everything bool) (err error) {
	if everything {
		if err := readTables(disk, dir); err != nil {
			return err
		}
	}
	if err := checkManifest(disk, dir); err != nil {
		return err
	}
	db, err := openToRead(dir, disk)
	if err != nil {
		return engineFailure(err)
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
		return engineFailure(fmt.Errorf("snapshot of the state: %w", err))
	}
	if !everything {
		return nil
	}
	it, err := db.NewIter(nil)
	if err != nil {
		return engineFailure(err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if _, err := it.ValueAndErr(); err != nil {
			return engineFailure(err)
		}
	}
	return engineFailure(it.Error())
}

// agrees compares a state with the document of its checkpoint.
func (m *meta) agrees(doc *commitlog.Checkpoint) error {
	if m.Committed == doc.Seq && m.Writer == doc.Writer && maps.Equal(m.Applied, doc.Applied) {
		return nil
	}
	return fmt.Errorf("it stands at manifest %d of %q and offsets %v, the checkpoint's document says %d, %q and %v",
		m.Committed, m.Writer, m.Applied, doc.Seq, doc.Writer, doc.Applied)
}

func readTables(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			if err := readTable(disk, disk.PathJoin(dir, name)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func readTable(disk vfs.FS, path string) (err error) {
	file, err := disk.Open(path)
	if err != nil {
		return engineFailure(err)
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(engineFailure(err), file.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return engineFailure(errors.Join(err, readable.Close()))
	}
	return engineFailure(errors.Join(r.ValidateBlockChecksums(), r.Close()))
}
