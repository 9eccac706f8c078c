package stream

import (
	"bytes"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Window bounds what is committed at once. The first bound that is reached
// closes it. Zero fields mean the defaults.
type Window struct {
	// Changes is the number of nodes whose row has changed.
	Changes int
	// Bytes is the size of the records consumed.
	Bytes int64
	// Time is how long the first record consumed waits for company.
	Time time.Duration
}

// The defaults of Window.
const (
	DefaultWindowChanges = 10_000
	DefaultWindowBytes   = 64 << 20
	DefaultWindowTime    = 5 * time.Second
)

func (w Window) withDefaults() Window {
	if w.Changes <= 0 {
		w.Changes = DefaultWindowChanges
	}
	if w.Bytes <= 0 {
		w.Bytes = DefaultWindowBytes
	}
	if w.Time <= 0 {
		w.Time = DefaultWindowTime
	}
	return w
}

// openWindow is what has gathered since the last commit.
type openWindow struct {
	seq   int64     // the sequence number it will be committed as
	dirty int       // nodes marked
	bytes int64     // size of the records consumed
	since time.Time // when the first batch came; zero while nothing has
}

func (w *openWindow) full(limit Window, now time.Time) bool {
	return !w.since.IsZero() &&
		(w.dirty >= limit.Changes || w.bytes >= limit.Bytes || now.Sub(w.since) >= limit.Time)
}

// Kinds of dirty marks, the value of their keys.
const (
	// markDue: the row has changed and must be written.
	markDue = 'd'
	// markSuspect: facts about the node changed without changing its row.
	// Beside what another worker has committed they may well change it, so
	// the mark becomes due if this state is taken up after another worker.
	markSuspect = 's'
)

func isDue(value []byte) bool { return len(value) == 1 && value[0] == markDue }

// countMarks counts the rows due in one window.
func (s *state) countMarks(window int64) (n int, err error) {
	err = s.eachMark(window, func(string) error { n++; return nil })
	return n, err
}

// eachMark calls f with the id of every node whose row is due in a window, in
// ascending order. What is pending is of the open window.
func (s *state) eachMark(window int64, f func(id string) error) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: dirtyPrefix(window), UpperBound: dirtyPrefix(window + 1)})
	if err != nil {
		return fmt.Errorf("read dirty marks: %w", err)
	}
	defer func() {
		if cerr := it.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("read dirty marks: %w", cerr)
		}
	}()
	pending := s.pending.due()
	for ok := it.First(); ok; ok = it.Next() {
		if kind, err := it.ValueAndErr(); err != nil {
			return fmt.Errorf("read dirty marks: %w", err)
		} else if !isDue(kind) {
			continue
		}
		id := string(it.Key()[dirtyKeyPrefix:])
		for ; len(pending) > 0 && pending[0] < id; pending = pending[1:] {
			if err := f(pending[0]); err != nil {
				return err
			}
		}
		if err := f(id); err != nil {
			return err
		}
	}
	for _, id := range pending {
		if err := f(id); err != nil {
			return err
		}
	}
	return nil
}

// promoteChunk bounds the memory of promoteMarks.
const promoteChunk = 10_000

// promoteMarks makes every mark, of whatever window and kind, a mark of window
// `to` that is due. It may be interrupted and repeated.
func (s *state) promoteMarks(to int64) error {
	from := dirtyPrefix(0)
	for from != nil {
		b := s.db.NewBatch()
		next, err := s.promoteSome(b, from, to)
		if err == nil {
			err = b.Commit(pebble.NoSync)
		}
		if cerr := b.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("move dirty marks: %w", err)
		}
		from = next
	}
	return nil
}

// promoteSome puts a chunk of marks into b, from a key on, and returns where the
// next chunk begins: nil at the end.
func (s *state) promoteSome(b *pebble.Batch, from []byte, to int64) (next []byte, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: dirtyPrefix(to + 1)})
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n > promoteChunk {
			return bytes.Clone(it.Key()), nil
		}
		if err := b.Delete(it.Key(), nil); err != nil {
			return nil, err
		}
		if err := b.Set(dirtyKey(nil, to, string(it.Key()[dirtyKeyPrefix:])), []byte{markDue}, nil); err != nil {
			return nil, err
		}
	}
	return nil, it.Error()
}

// dropMarks removes every mark there is.
func (s *state) dropMarks() error {
	if err := s.db.DeleteRange([]byte{spaceDirty}, []byte{spaceDirty + 1}, pebble.NoSync); err != nil {
		return fmt.Errorf("drop dirty marks: %w", err)
	}
	return nil
}
