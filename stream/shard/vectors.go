package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

// vectorsID names the vectors that an input states of a node.
type vectorsID struct {
	id    string
	input byte
}

func (a vectorsID) compare(b vectorsID) int {
	if c := strings.Compare(a.id, b.id); c != 0 {
		return c
	}
	return int(a.input) - int(b.input)
}

// nodeVectors is a last-writer-wins register: the newest vectors of a node that one input has stated. One partition of
// one topic states all of it, so no row of vectors changes by what another shard commits. The zero value stands for no
// statement.
type nodeVectors struct {
	set bool
	at  mutation.Version
	all []mutation.Vector // ascending by name
}

func (v *nodeVectors) encode(buf []byte) []byte {
	buf = binary.AppendUvarint(appendVersion(buf[:0], v.at), uint64(len(v.all)))
	for i := range v.all {
		one := &v.all[i]
		buf = append(appendString(buf, one.Name), byte(one.Precision))
		buf = append(binary.AppendUvarint(buf, uint64(one.Len())), one.Data...)
	}
	return buf
}

func decodeVectors(data []byte) (nodeVectors, error) {
	d := decoder{data: data}
	v := nodeVectors{set: true, at: d.version()}
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		one := mutation.Vector{Name: d.string(), Precision: mutation.Precision(d.byte())}
		length := d.uvarint()
		if one.Precision != mutation.Float16 && one.Precision != mutation.Float32 || length > uint64(len(d.data)) {
			d.bad = true
			break
		}
		one.Data = string(d.bytes(length * uint64(one.Precision)))
		v.all = append(v.all, one)
	}
	return v, d.finish("vectors")
}

// row builds the row of the vectors.
func (v *nodeVectors) row(k vectorsID) rows.Vectors {
	r := rows.Vectors{NodeID: k.id, Input: int32(k.input), EventTime: v.at.EventTime}
	for i := range v.all {
		one := &v.all[i]
		r.Names, r.Bits = append(r.Names, one.Name), append(r.Bits, 8*int32(one.Precision))
		r.Values = append(r.Values, []byte(one.Data))
	}
	return r
}

// vectorsKey is the key of the vectors that an input has stated of a node.
func vectorsKey(buf []byte, k vectorsID) []byte {
	return append(ownerPrefix(buf, spaceVectors, k.id), k.input)
}

// vectorsMarkKey is the key of their dirty mark: what follows the window is what follows the space in vectorsKey.
func vectorsMarkKey(window int64, k vectorsID) []byte {
	return append(markPrefix(spaceVectorsDue, window), vectorsKey(nil, k)[1:]...)
}

// vectorsOfKey returns what a key of vectors names. The byte before at is of no meaning.
func vectorsOfKey(key []byte) (vectorsID, error) {
	owner, err := ownerOf(key)
	return vectorsID{string(owner), key[len(key)-1]}, err
}

// pendingVectors are vectors of the open window. changed: they are newer than the files. due: their row must be
// written. dueWritten: the files have the mark.
type pendingVectors struct {
	vectorsID
	nodeVectors
	changed, due, dueWritten bool
}

// vectorsOf returns what is known of vectors, to read or to change.
func (p *pending) vectorsOf(k vectorsID) (*pendingVectors, error) {
	if v := p.vectors[k]; v != nil {
		return v, nil
	}
	v := &pendingVectors{vectorsID: k}
	p.key = vectorsKey(p.key, k)
	err := lookUp(p.db, p.key, func(data []byte) (err error) {
		v.nodeVectors, err = decodeVectors(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	if p.vectors == nil {
		p.vectors = map[vectorsID]*pendingVectors{}
	}
	p.vectors[k] = v
	p.take(pendingVectorsBytes + len(k.id) + mutation.VectorBytes(v.all))
	return v, nil
}

// vectorsInOrder returns the vectors that the open window has read or changed, ascending.
func (p *pending) vectorsInOrder() []*pendingVectors {
	all := make([]*pendingVectors, 0, len(p.vectors))
	for _, v := range p.vectors {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b *pendingVectors) int { return a.compare(b.vectorsID) })
	return all
}

// setVectors enters the vectors that a record states. Vectors that are stated again, of whatever time, move no row.
func (c *change) setVectors(m *mutation.Mutation) error {
	v, err := c.known.vectorsOf(vectorsID{id: m.ID, input: m.Version.Rank})
	if err != nil {
		return err
	}
	if v.set && m.Version.Compare(v.at) <= 0 {
		c.lose(m.Version, v.at)
		return nil
	}
	same := slices.Equal(v.all, m.Vectors)
	c.known.take(mutation.VectorBytes(m.Vectors) - mutation.VectorBytes(v.all))
	v.nodeVectors, v.changed = nodeVectors{set: true, at: m.Version, all: m.Vectors}, true
	if same {
		return nil
	}
	c.won = true
	if err := c.markVectors(v); err != nil {
		return err
	}
	return c.markEncoded(m.ID)
}

// markEncoded notes that a node's row must be written, so that those who follow encode the node with the vectors that
// have changed.
func (c *change) markEncoded(id string) error {
	n := c.known.node(id)
	h, err := c.known.header(n)
	if err != nil {
		return err
	}
	if !c.eager && !h.exists() {
		return c.setMark(n, markSuspect)
	}
	return c.mark(n)
}

// markVectors notes that a row of vectors must be written with the open window.
func (c *change) markVectors(v *pendingVectors) (err error) {
	if c.covered || v.due {
		return nil
	}
	v.due = true
	if c.known.spilled {
		err = lookUp(c.known.db, vectorsMarkKey(c.window, v.vectorsID),
			func([]byte) error { v.dueWritten = true; return nil })
	}
	if !v.dueWritten {
		c.dirty++
	}
	return err
}

// writeVectors puts vectors into a batch that may differ from the files, and the marks of a window that the files do
// not have. Window 0 leaves the marks out.
func (p *pending) writeVectors(b *pebble.Batch, window int64) error {
	var key, value []byte
	for _, v := range p.vectorsInOrder() {
		if v.changed {
			key, value = vectorsKey(key, v.vectorsID), v.encode(value)
			if err := b.Set(key, value, nil); err != nil {
				return err
			}
		}
		if window == 0 || !v.due || v.dueWritten {
			continue
		}
		if err := b.Set(vectorsMarkKey(window, v.vectorsID), []byte{markDue}, nil); err != nil {
			return err
		}
	}
	return nil
}

// vectorRows yields the rows of the vectors that are due in a window, ascending by node and input.
func (s *state) vectorRows(window int64) iter.Seq2[rows.Vectors, error] {
	return func(yield func(rows.Vectors, error) bool) {
		err := s.eachDueVectors(window, func(k vectorsID, v *nodeVectors) error {
			if !yield(v.row(k), nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(rows.Vectors{}, err)
		}
	}
}

// eachDueVectors calls f with all vectors that have a mark in a window, ascending. Pending marks belong to the open
// window.
func (s *state) eachDueVectors(window int64, f func(k vectorsID, v *nodeVectors) error) (err error) {
	defer s.guard.Catch(&err)
	pending := slices.DeleteFunc(s.pending.vectorsInOrder(),
		func(v *pendingVectors) bool { return !v.due || v.dueWritten })
	next := func(before *vectorsID) error {
		for ; len(pending) > 0 && (before == nil || pending[0].compare(*before) < 0); pending = pending[1:] {
			if err := f(pending[0].vectorsID, &pending[0].nodeVectors); err != nil {
				return err
			}
		}
		return nil
	}
	if s.pending.spilled {
		err := s.eachWrittenVectorsMark(window, func(k vectorsID) error {
			if err := next(&k); err != nil {
				return err
			}
			v, err := s.vectorsOf(k)
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

func (s *state) eachWrittenVectorsMark(window int64, f func(k vectorsID) error) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: markPrefix(spaceVectorsDue, window),
		UpperBound: markPrefix(spaceVectorsDue, window+1)})
	if err != nil {
		return fmt.Errorf("read marks of vectors: %w", engine.Failure(err))
	}
	defer func() { err = errors.Join(err, engine.Failure(it.Close())) }()
	for ok := it.First(); ok; ok = it.Next() {
		k, err := vectorsOfKey(it.Key()[markKeyPrefix-1:])
		if err == nil {
			err = f(k)
		}
		if err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("read marks of vectors: %w", engine.Failure(err))
	}
	return nil
}

// vectorsOf returns vectors as the open window has them, or else the files.
func (s *state) vectorsOf(k vectorsID) (*nodeVectors, error) {
	if v := s.pending.vectors[k]; v != nil {
		return &v.nodeVectors, nil
	}
	var v nodeVectors
	err := lookUp(s.db, vectorsKey(nil, k), func(data []byte) (err error) {
		v, err = decodeVectors(data)
		return err
	})
	if err == nil && !v.set {
		err = fmt.Errorf("%w: vectors of node %q have a mark and are not there", errCorruptState, k.id)
	}
	return &v, err
}
