package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/shard/engine"
)

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
