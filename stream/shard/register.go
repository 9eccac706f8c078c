package shard

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/stream/shard/engine"
)

// registerID names a register: an order, or the vectors that an input states of a node. One partition of one topic
// states all of it, so there is no mirror, and no row of it changes by what another shard commits.
type registerID[K any] interface {
	comparable
	compare(other K) int
	// key returns the key of the register in the files, in the memory of buf.
	key(buf []byte) []byte
}

// registerKind says how the registers of a kind are kept.
type registerKind[K registerID[K], V any] struct {
	name string // for errors
	// marks is the space of the marks of those whose row must be written. What follows the window there is what
	// follows the space in a register's key.
	marks byte
	// ofKey returns what a key names. Its first byte is of no meaning.
	ofKey  func(key []byte) (K, error)
	decode func(data []byte) (V, error)
	// put writes a register, or removes it if nothing is known of it.
	put func(b *pebble.Batch, key []byte, v *V, scratch *[]byte) error
	// bytes is what a register takes in memory.
	bytes func(k K, v *V) int
	// expires: one that has a mark may have expired since.
	expires bool
}

func (kind *registerKind[K, V]) markKey(window int64, k K) []byte {
	return append(markPrefix(kind.marks, window), k.key(nil)[1:]...)
}

// lookUp reads a register from the files, the zero value if they do not have it.
func (kind *registerKind[K, V]) lookUp(db *pebble.DB, k K) (v V, found bool, err error) {
	err = lookUp(db, k.key(nil), func(data []byte) (err error) {
		v, err = kind.decode(data)
		found = true
		return err
	})
	return v, found, err
}

// register is one of the open window. changed: it is newer than the files. due: its row must be written. dueWritten:
// the files have the mark.
type register[K registerID[K], V any] struct {
	id                       K
	value                    V
	changed, due, dueWritten bool
}

// registers are those of a kind that the open window has read or changed.
type registers[K registerID[K], V any] struct {
	kind *registerKind[K, V]
	all  map[K]*register[K, V]
}

// get returns what is known of a register, to read or to change.
func (r *registers[K, V]) get(p *pending, k K) (*register[K, V], error) {
	if known := r.all[k]; known != nil {
		return known, nil
	}
	value, _, err := r.kind.lookUp(p.db, k)
	if err != nil {
		return nil, err
	}
	if r.all == nil {
		r.all = map[K]*register[K, V]{}
	}
	known := &register[K, V]{id: k, value: value}
	r.all[k] = known
	p.take(r.kind.bytes(k, &value))
	return known, nil
}

// inOrder returns the registers ascending.
func (r *registers[K, V]) inOrder() []*register[K, V] {
	all := make([]*register[K, V], 0, len(r.all))
	for _, one := range r.all {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *register[K, V]) int { return a.id.compare(b.id) })
	return all
}

// mark notes that the row of one must be written with the open window.
func (r *registers[K, V]) mark(c *change, one *register[K, V]) (err error) {
	if c.covered || one.due {
		return nil
	}
	one.due = true
	if c.known.spilled {
		err = lookUp(c.known.db, r.kind.markKey(c.window, one.id),
			func([]byte) error { one.dueWritten = true; return nil })
	}
	if !one.dueWritten {
		c.dirty++
	}
	return err
}

// writeMarks puts the marks of a window that the files do not have into a batch.
func (r *registers[K, V]) writeMarks(b *pebble.Batch, window int64) error {
	for _, one := range r.inOrder() {
		if !one.due || one.dueWritten {
			continue
		}
		if err := b.Set(r.kind.markKey(window, one.id), []byte{markDue}, nil); err != nil {
			return err
		}
	}
	return nil
}

// write puts those into a batch that may differ from the files.
func (r *registers[K, V]) write(b *pebble.Batch) error {
	var key, scratch []byte
	for _, one := range r.inOrder() {
		if !one.changed {
			continue
		}
		key = one.id.key(key)
		if err := r.kind.put(b, key, &one.value, &scratch); err != nil {
			return err
		}
	}
	return nil
}

// eachDue calls f with every register that has a mark in a window, ascending. Pending marks belong to the open window.
func (r *registers[K, V]) eachDue(s *state, window int64, f func(k K, v *V) error) (err error) {
	defer s.guard.Catch(&err)
	pending := slices.DeleteFunc(r.inOrder(), func(one *register[K, V]) bool { return !one.due || one.dueWritten })
	next := func(before *K) error {
		for ; len(pending) > 0 && (before == nil || pending[0].id.compare(*before) < 0); pending = pending[1:] {
			if err := f(pending[0].id, &pending[0].value); err != nil {
				return err
			}
		}
		return nil
	}
	if s.pending.spilled {
		err := r.eachWrittenMark(s.db, window, func(k K) error {
			if err := next(&k); err != nil {
				return err
			}
			v, err := r.marked(s, k)
			if err != nil {
				return err
			}
			return f(k, v)
		})
		if err != nil {
			return err
		}
	}
	return next(nil)
}

func (r *registers[K, V]) eachWrittenMark(db *pebble.DB, window int64, f func(k K) error) (err error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: markPrefix(r.kind.marks, window),
		UpperBound: markPrefix(r.kind.marks, window+1)})
	if err != nil {
		return fmt.Errorf("read marks of %s: %w", r.kind.name, engine.Failure(err))
	}
	defer func() { err = errors.Join(err, engine.Failure(it.Close())) }()
	for ok := it.First(); ok; ok = it.Next() {
		k, err := r.kind.ofKey(it.Key()[markKeyPrefix-1:])
		if err == nil {
			err = f(k)
		}
		if err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("read marks of %s: %w", r.kind.name, engine.Failure(err))
	}
	return nil
}

// marked returns a register that has a mark, as the open window has it, or else the files.
func (r *registers[K, V]) marked(s *state, k K) (*V, error) {
	if one := r.all[k]; one != nil {
		return &one.value, nil
	}
	v, found, err := r.kind.lookUp(s.db, k)
	if err == nil && !found && (!r.kind.expires || s.meta.OrderHorizon == 0) {
		err = fmt.Errorf("%w: %s %+v: there is a mark, but nothing else", errCorruptState, r.kind.name, k)
	}
	return &v, err
}

// registerRows yields the rows of the registers that are due in a window, ascending; row reports whether one has a row.
func registerRows[K registerID[K], V, R any](s *state, r *registers[K, V], window int64,
	row func(k K, v *V) (R, bool)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		err := r.eachDue(s, window, func(k K, v *V) error {
			if one, ok := row(k, v); ok && !yield(one, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			var none R
			yield(none, err)
		}
	}
}
