package shard

import (
	"encoding/binary"
	"errors"
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

// vectorCounts says how many vectors are stated of each name. One of two inputs is two.
type vectorCounts map[string]int64

// add adds n for each vector.
func (c vectorCounts) add(all []mutation.Vector, n int64) {
	for i := range all {
		c.addTo(all[i].Name, n)
	}
}

func (c vectorCounts) addAll(d vectorCounts) {
	for name, n := range d {
		c.addTo(name, n)
	}
}

// addTo has no name with 0, so that equal counts are equal maps.
func (c vectorCounts) addTo(name string, n int64) {
	if c[name] += n; c[name] == 0 {
		delete(c, name)
	}
}

// countVectors reads all vectors of the files.
func (s *state) countVectors() (counts vectorCounts, err error) {
	counts = vectorCounts{}
	it, err := iterate(s.db, spaceVectors)
	if err != nil {
		return nil, engine.Failure(err)
	}
	defer func() { err = errors.Join(err, engine.Failure(it.Close())) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, engine.Failure(err)
		}
		v, err := decodeVectors(value)
		if err != nil {
			return nil, err
		}
		counts.add(v.all, 1)
	}
	return counts, engine.Failure(it.Error())
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

// key implements registerID.
func (a vectorsID) key(buf []byte) []byte {
	return append(ownerPrefix(buf, spaceVectors, a.id), a.input)
}

// vectorsOfKey returns what a key of vectors names. The byte before at is of no meaning.
func vectorsOfKey(key []byte) (vectorsID, error) {
	owner, err := ownerOf(key)
	return vectorsID{string(owner), key[len(key)-1]}, err
}

// vectorsKind says how vectors are kept.
var vectorsKind = registerKind[vectorsID, nodeVectors]{name: "vectors", marks: spaceVectorsDue, ofKey: vectorsOfKey,
	decode: decodeVectors, put: func(b *pebble.Batch, key []byte, v *nodeVectors, scratch *[]byte) error {
		*scratch = v.encode(*scratch)
		return b.Set(key, *scratch, nil)
	}, bytes: func(k vectorsID, v *nodeVectors) int {
		return pendingVectorsBytes + len(k.id) + mutation.VectorBytes(v.all)
	}}

// setVectors enters the vectors that a record states. Vectors that are stated again, of whatever time, move no row.
func (c *change) setVectors(m *mutation.Mutation) error {
	r, err := c.known.vectors.get(c.known, vectorsID{id: m.ID, input: m.Version.Rank})
	if err != nil {
		return err
	}
	v := &r.value
	if v.set && m.Version.Compare(v.at) <= 0 {
		c.lose(m.Version, v.at)
		return nil
	}
	before := v.all
	c.vectors.add(before, -1)
	c.vectors.add(m.Vectors, 1)
	c.known.take(mutation.VectorBytes(m.Vectors) - mutation.VectorBytes(before))
	*v, r.changed = nodeVectors{set: true, at: m.Version, all: m.Vectors}, true
	if slices.Equal(before, m.Vectors) {
		return nil
	}
	c.won = true
	if err := c.known.vectors.mark(c, r); err != nil {
		return err
	}
	if ordered(before) && ordered(m.Vectors) {
		return c.markEncoded(m.ID, markAgain)
	}
	return c.markEncoded(m.ID, markDue)
}

// ordered says whether vectors say nothing but what a node is ordered with, which is known by the orders.
func ordered(all []mutation.Vector) bool {
	return !slices.ContainsFunc(all, func(v mutation.Vector) bool { return v.Name != rows.OrderedName })
}

// markEncoded notes that a node's row must be written, so that those who follow encode the node with the vectors that
// have changed. Again counts rows that are there.
func (c *change) markEncoded(id string, kind byte) error {
	n := c.known.node(id)
	h, err := c.known.header(n)
	if err != nil {
		return err
	}
	switch {
	case h.exists():
	case c.eager:
		kind = markDue
	default:
		kind = markSuspect
	}
	return c.setMark(n, kind)
}

// vectorRows yields the rows of the vectors that are due in a window, ascending by node and input.
func (s *state) vectorRows(window int64) iter.Seq2[rows.Vectors, error] {
	return registerRows(s, &s.pending.vectors, window, func(k vectorsID, v *nodeVectors) (rows.Vectors, bool) {
		return v.row(k), true
	})
}
