package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/stream/commitlog"
	"giantstream/stream/shard/engine"
)

// stateFormat is the version of the state's keys and values. A state of another format is refused.
// Format page: docs/format/state.md.
const stateFormat = 1

// state is the graph of one shard, on local disk and, as far as it is not written yet, in memory.
// It is a function of the records below meta.Applied, and can be rebuilt from them.
type state struct {
	db      *pebble.DB
	pending pending
	meta    meta // with the pending part; the meta on disk is that of the last flush
	dir     string
	lock    io.Closer // of dir
	guard   *engine.Guard
	grace   time.Duration // Options.grace
	fs      *engine.FS
	// giveBack is of Cache.addMemTables.
	giveBack func()
	states   int       // that share the memory of the process
	flushed  time.Time // when flushIfDue last began a flush
}

// openState opens or creates the state in dir. want names the shard that it must belong to. What
// lies in dir and is no state is ErrStateDamaged.
func (o *Options) openState(ctx context.Context, dir string, want meta) (_ *state, err error) {
	lock, err := engine.Lock(o.fs, dir)
	if err != nil {
		return nil, fmt.Errorf("open the state of shard %d in %s: %w", want.Shard, dir, err)
	}
	guard := engine.NewGuard(o.grace)
	cache := o.Cache
	if cache == nil {
		cache = NewCache()
		defer cache.Release() // the engine holds a reference
	}
	s := &state{dir: dir, lock: lock, guard: guard, grace: o.grace, fs: engine.NewFS(o.fs, guard)}
	s.pending.memory = &cache.window
	s.pending.orders.kind, s.pending.vectors.kind = &orderKind, &vectorsKind
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the state of shard %d in %s: %w", want.Shard, dir, errors.Join(err, s.close()))
		}
	}()
	if err := s.checkSpace(stateReserveBytes); err != nil {
		return nil, err
	}
	return s, guard.Run(ctx, func(context.Context) error {
		if err := engine.CheckManifest(o.fs, dir); err != nil {
			return err
		}
		s.states = cache.sharing(o.Shards)
		memTable := memTableBytes(s.states)
		giveBack := cache.addMemTables(memTable)
		db, err := engine.Open(dir, s.fs, guard, cache.blocks, memTable, o.Log)
		if err != nil {
			giveBack()
			return engine.Failure(err)
		}
		s.giveBack = giveBack
		s.db, s.pending.db, s.pending.spilled, s.pending.dropped = db, db, true, true
		return s.load(want)
	})
}

func (s *state) load(want meta) (err error) {
	want.Format, want.Applied, want.PlainLinks = stateFormat, map[string]int64{}, true
	s.meta = want // unless one is on disk
	if err = s.readMeta(); err != nil {
		return err
	}
	have := s.meta
	if have.Format != stateFormat {
		return fmt.Errorf("%w: it has format %d, this version reads %d", engine.ErrDamaged, have.Format, stateFormat)
	}
	if have.Pipeline != want.Pipeline || have.Shard != want.Shard || have.Shards != want.Shards ||
		have.Undirected != want.Undirected {
		return fmt.Errorf("state in %s %w: it is of pipeline %q, shard %d of %d, undirected %t; "+
			"expected %q, shard %d of %d, undirected %t",
			s.dir, commitlog.ErrIdentity, have.Pipeline, have.Shard, have.Shards, have.Undirected,
			want.Pipeline, want.Shard, want.Shards, want.Undirected)
	}
	if s.meta.Applied == nil {
		s.meta.Applied = map[string]int64{}
	}
	if s.meta.Vectors == nil {
		s.meta.Vectors, err = s.countVectors()
	}
	return err
}

// readMeta reads the meta from disk, if there is one. Every write has it, so a database without one
// is empty or not ours.
func (s *state) readMeta() error {
	found := false
	err := lookUp(s.db, metaKey(), func(data []byte) (err error) {
		found = true
		s.meta, err = decodeMeta(data)
		return err
	})
	if err == nil && !found {
		err = s.checkEmpty()
	}
	if err != nil {
		return fmt.Errorf("read the state in %s: %w", s.dir, err)
	}
	return nil
}

func (s *state) checkEmpty() (err error) {
	defer func() { err = engine.Failure(err) }()
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if it.First() {
		return fmt.Errorf("%w: it has keys and does not say whose", engine.ErrDamaged)
	}
	return it.Error()
}

// setMeta puts m into the batch.
func setMeta(b *pebble.Batch, m *meta) error {
	data, err := m.encode()
	if err != nil {
		return fmt.Errorf("encode state meta: %w", err)
	}
	return b.Set(metaKey(), data, nil)
}

// Of absent nodes, 1 of 25 is not ruled out when the filter is full; of absent links, 1 of 8. Memory
// that no key has touched is not resident.
var (
	nodeFilterSize = engine.FilterSize{Bytes: 1 << 20, Room: 1 << 20}
	linkFilterSize = engine.FilterSize{Bytes: 2 << 20, Room: 3 << 20}
)

// ready prepares the state for changes. The first call reads the keys of all nodes and links, which
// may take a while.
func (s *state) ready() (err error) {
	if p := &s.pending; p.headers == nil {
		p.links, err = engine.NewKeyFilter(s.db, spaceAdjacency, linkFilterSize.ShareFor(s.states), s.meta.Edges,
			adjacencyPrefixOf)
		if err != nil {
			return err
		}
		p.headers, err = engine.NewKeyFilter(s.db, spaceHeader, nodeFilterSize.ShareFor(s.states), s.meta.Nodes, nil)
	}
	return err
}

// keptBatchBytes bounds the memory of a batch that is kept for the next window of any shard.
const keptBatchBytes = 8 << 20

// newBatch returns a batch with room for what is pending. Close it.
func (s *state) newBatch() *pebble.Batch {
	return s.db.NewBatchWithSize(s.pending.batchBytes(), pebble.WithMaxRetainedSizeBytes(keptBatchBytes))
}

// spill writes what is pending, with the marks of the open window, before the window is committed:
// all of it or nothing.
func (s *state) spill(window int64) error {
	b := s.newBatch()
	defer b.Close() //nolint:errcheck // Commit has reported all that matters
	s.pending.spilled = true
	if err := s.write(b, window); err != nil {
		return err
	}
	if !s.pending.keep() {
		s.pending.forget()
		s.pending.dropped = true
	}
	return nil
}

// commitWindow ends all windows up to seq, after their rows were committed: it writes what is
// pending and removes the marks.
func (s *state) commitWindow(seq int64, writer string) error {
	b := s.newBatch()
	defer b.Close() //nolint:errcheck // Commit has reported all that matters
	if s.pending.spilled {
		for _, space := range markSpaces {
			if err := b.DeleteRange(markPrefix(space, 0), markPrefix(space, seq+1), nil); err != nil {
				return engine.Failure(err)
			}
		}
	}
	s.meta.Committed, s.meta.Writer = seq, writer
	if err := s.write(b, 0); err != nil {
		return err
	}
	s.pending.forget()
	s.pending.spilled, s.pending.dropped = false, false
	return nil
}

// flushEvery bounds how much is read again after a crash, for a shard that changes too little to
// fill its memtables.
const flushEvery = time.Minute

// flushIfDue makes the engine flush its memtables in the background.
func (s *state) flushIfDue(now time.Time) error {
	if now.Sub(s.flushed) < flushEvery {
		return nil
	}
	s.flushed = now
	if _, err := s.db.AsyncFlush(); err != nil {
		return fmt.Errorf("flush the state in %s: %w", s.dir, engine.Failure(err))
	}
	return nil
}

// write commits the batch together with what is pending and the meta.
func (s *state) write(b *pebble.Batch, marksOf int64) error {
	err := s.pending.write(b, marksOf)
	if err == nil {
		err = setMeta(b, &s.meta)
	}
	if err == nil {
		err = b.Commit(pebble.NoSync)
	}
	if err != nil {
		return fmt.Errorf("write the state in %s: %w", s.dir, engine.Failure(err))
	}
	return nil
}

// closeFlushTime bounds how long close waits for a disk that does not respond.
const closeFlushTime = 10 * time.Second

// close closes the files. What is pending is dropped, and read again by the next opening. After a
// failure of the engine it returns only errors of the close itself.
func (s *state) close() (err error) {
	s.pending.release()
	failed := s.guard.Failure() != nil
	if !s.guard.LeftCallBehind() && s.db != nil {
		s.pending.forget()
		err = s.guard.Run(context.Background(), func(context.Context) error {
			if !failed {
				s.flushInTime()
			}
			s.giveBack()
			return s.db.Close()
		})
	}
	s.fs.Sever()
	if failed {
		err = nil // it is the failure, which was reported
	}
	return errors.Join(err, s.lock.Close())
}

func (s *state) flushInTime() {
	done, err := s.db.AsyncFlush()
	if err != nil {
		return // what is not flushed is read again
	}
	select {
	case <-done:
	case <-s.guard.Failed():
	case <-time.After(closeFlushTime):
	}
}

// stateReserveBytes is the free space without which a shard does not go on. It takes what all shards
// of a process may have in memory at once: the open windows, and a few memtables on their way to the
// disk. The engine bounds its compactions by the free space itself.
const stateReserveBytes = windowMemoryBytes + memTablesBytes

// checkSpace returns ErrDiskFull if less than `bytes` bytes are free. A copy of the state that was set
// aside is removed first.
func (s *state) checkSpace(bytes uint64) error {
	err := engine.CheckSpace(s.fs.FS, s.dir, bytes)
	if err == nil || engine.RemoveAside(s.fs.FS, s.dir) != nil {
		return err
	}
	return engine.CheckSpace(s.fs.FS, s.dir, bytes)
}
