package shard

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/stream/shard/engine"
)

// openWindow is what has gathered since the last commit.
type openWindow struct {
	seq   int64     // the sequence number that will commit it
	dirty int       // due nodes
	bytes int64     // size of the records consumed
	since time.Time // when the first batch came; zero before
}

func (w *openWindow) full(limit Window) bool {
	return w.dirty >= limit.Changes || w.bytes >= limit.Bytes
}

// countMarks counts the rows due in one window.
func (s *state) countMarks(window int64) (n int, err error) {
	err = s.eachMark(window, nodeMarks+string(markAttributes), func(string, *pendingNode) error { n++; return nil })
	if err != nil {
		return 0, err
	}
	if err := s.pending.orders.eachDue(s, window, func(orderID, *order) error { n++; return nil }); err != nil {
		return 0, err
	}
	err = s.pending.vectors.eachDue(s, window, func(vectorsID, *nodeVectors) error { n++; return nil })
	return n, err
}

// eachMark calls f with the id of every node that has a mark of some kinds in a window, in ascending order, and
// with what is pending of it, nil for nothing. Pending marks belong to the open window.
func (s *state) eachMark(window int64, kinds string, f func(id string, n *pendingNode) error) (err error) {
	pending := s.pending.marked(kinds)
	if s.pending.spilled {
		if pending, err = s.eachWrittenMark(window, kinds, pending, f); err != nil {
			return err
		}
	}
	for _, n := range pending {
		if err := f(n.id, n); err != nil {
			return err
		}
	}
	return nil
}

// eachWrittenMark is eachMark for the nodes whose marks are in the files, and for those pending ones
// that are not behind all of them. It returns the rest of those pending.
func (s *state) eachWrittenMark(window int64, kinds string, pending []*pendingNode,
	f func(id string, n *pendingNode) error) (rest []*pendingNode, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: markPrefix(spaceDirty, window),
		UpperBound: markPrefix(spaceDirty, window+1)})
	if err != nil {
		return nil, fmt.Errorf("read dirty marks: %w", engine.Failure(err))
	}
	defer func() {
		if cerr := it.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("read dirty marks: %w", engine.Failure(cerr))
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, fmt.Errorf("read dirty marks: %w", engine.Failure(err))
		}
		kind := markOf(value)
		if kind == 0 || strings.IndexByte(kinds, kind) < 0 {
			continue
		}
		id := string(it.Key()[markKeyPrefix:])
		if n := s.pending.nodes[id]; n != nil && outweighs(n.mark, kind) {
			continue // it has got another mark since
		}
		for ; len(pending) > 0 && pending[0].id < id; pending = pending[1:] {
			if err := f(pending[0].id, pending[0]); err != nil {
				return nil, err
			}
		}
		if err := f(id, s.pending.nodes[id]); err != nil {
			return nil, err
		}
	}
	if err := it.Error(); err != nil {
		return nil, fmt.Errorf("read dirty marks: %w", engine.Failure(err))
	}
	return pending, nil
}

// promoteChunk bounds the memory of promoteMarks.
const promoteChunk = 10_000

// promoteMarks turns every mark of any window and kind into a due mark of window `to`. It may be
// interrupted and repeated.
func (s *state) promoteMarks(to int64) error {
	for _, space := range markSpaces {
		if err := s.promoteSpace(space, to); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) promoteSpace(space byte, to int64) error {
	from := markPrefix(space, 0)
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
			return fmt.Errorf("move dirty marks: %w", engine.Failure(err))
		}
		from = next
	}
	return nil
}

// promoteSome puts the changes of a chunk of marks, from a key on, into b. It returns the key at
// which the next chunk begins, nil at the end.
func (s *state) promoteSome(b *pebble.Batch, from []byte, to int64) (next []byte, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: markPrefix(from[0], to+1)})
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
		key := append(markPrefix(from[0], to), it.Key()[markKeyPrefix:]...)
		if err := b.Set(key, []byte{markDue}, nil); err != nil {
			return nil, err
		}
	}
	return nil, it.Error()
}

// dropMarks removes all marks.
func (s *state) dropMarks() error {
	for _, space := range markSpaces {
		if err := s.db.DeleteRange([]byte{space}, []byte{space + 1}, pebble.NoSync); err != nil {
			return fmt.Errorf("drop dirty marks: %w", engine.Failure(err))
		}
	}
	return nil
}
