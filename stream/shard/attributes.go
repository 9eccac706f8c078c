package shard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

// stated is a last-writer-wins register: the newest attributes of a node that one input has stated. The zero value
// stands for no statement.
type stated struct {
	set    bool
	at     mutation.Version
	object string // JSON
}

func (s *stated) encode(buf []byte) []byte { return append(appendVersion(buf[:0], s.at), s.object...) }

func decodeStated(data []byte) (stated, error) {
	d := decoder{data: data}
	s := stated{set: true, at: d.version()}
	if d.bad {
		return stated{}, d.finish("attributes")
	}
	s.object = string(d.data)
	return s, nil
}

// pendingStated is what an input has stated of a pendingNode's attributes. set: it is newer than the files.
type pendingStated struct {
	input byte
	stated
	set bool
}

// attributes returns what an input has stated of a node's attributes, to read or to change until the next call.
func (p *pending) attributes(n *pendingNode, input byte) (*pendingStated, error) {
	all := &n.facts.attributes
	at, known := slices.BinarySearchFunc(*all, input,
		func(s pendingStated, input byte) int { return int(s.input) - int(input) })
	if known {
		return &(*all)[at], nil
	}
	found := pendingStated{input: input}
	p.key = attributeKey(p.key, n.id, input)
	err := lookUp(p.db, p.key, func(data []byte) (err error) {
		found.stated, err = decodeStated(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.take(pendingStatedBytes + len(found.object))
	*all = slices.Insert(*all, at, found)
	return &(*all)[at], nil
}

// setAttributes enters what an input states of a node's attributes, and reports whether a row shows it.
func (c *change) setAttributes(n *pendingNode, object string, at mutation.Version) (changed bool, err error) {
	s, err := c.known.attributes(n, at.Rank)
	if err != nil {
		return false, err
	}
	if s.stated.set && at.Compare(s.at) <= 0 {
		c.lose(at, s.at)
		return false, nil
	}
	changed = !s.stated.set || s.object != object || s.at.EventTime != at.EventTime
	c.won = c.won || changed
	c.known.take(len(object) - len(s.object))
	s.stated, s.set = stated{set: true, at: at, object: object}, true
	return changed, nil
}

// markAttributes notes that attributes of a node, or its event time, have changed: the node's own row need not be
// written for that.
func (c *change) markAttributes(n *pendingNode, h *nodeHeader) error {
	if !c.eager && !h.exists() {
		return c.setMark(n, markSuspect)
	}
	return c.setMark(n, markAttributes)
}

// attributes returns a node's attributes as one JSON object, "" for none, and the newest event time of what was stated
// of them.
func (r *rowReader) attributes(id string, p *pendingNode, newest int64) (object string, eventTime int64, err error) {
	var newer []pendingStated
	if p != nil && p.facts != nil {
		newer = p.facts.attributes
	}
	var objects []string
	take := func(s stated) {
		newest = max(newest, s.at.EventTime)
		objects = append(objects, s.object)
	}
	r.key = ownerPrefix(r.key, spaceAttribute, id)
	it := r.stated
	for ok := it != nil && it.SeekGE(r.key); ok && bytes.HasPrefix(it.Key(), r.key); ok = it.Next() {
		input := it.Key()[len(it.Key())-1]
		for ; len(newer) > 0 && newer[0].input < input; newer = newer[1:] {
			if newer[0].stated.set {
				take(newer[0].stated)
			}
		}
		if len(newer) > 0 && newer[0].input == input {
			continue
		}
		data, err := it.ValueAndErr()
		if err != nil {
			return "", 0, err
		}
		s, err := decodeStated(data)
		if err != nil {
			return "", 0, err
		}
		take(s)
	}
	if it != nil && it.Error() != nil {
		return "", 0, it.Error()
	}
	for _, s := range newer {
		if s.stated.set {
			take(s.stated)
		}
	}
	object, err = joinObjects(objects)
	return object, newest, err
}

// joinObjects returns a JSON object with the members of all: names ascending, no spaces, "" for none. Of members with
// one name, the last one stays.
func joinObjects(objects []string) (string, error) {
	objects = slices.DeleteFunc(objects, func(o string) bool { return o == mutation.NoAttributes })
	switch len(objects) {
	case 0:
		return "", nil
	case 1:
		return objects[0], nil
	}
	members := map[string]json.RawMessage{}
	for _, o := range objects {
		if err := json.Unmarshal([]byte(o), &members); err != nil {
			return "", fmt.Errorf("%w: attributes do not parse: %w", errCorruptState, err)
		}
	}
	b := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, '"'), name...), '"', ':'), members[name]...)
	}
	return string(append(b, '}')), nil
}

// attributeRow builds the row of a node of which nothing but attributes and event time has changed. A node that does
// not exist has none.
func (r *rowReader) attributeRow(id string, p *pendingNode) (row rows.Attributes, exists bool, err error) {
	h, err := r.header(id, p)
	if err != nil || !h.exists() {
		return row, false, err
	}
	row.NodeID = id
	if row.Attributes, row.EventTime, err = r.attributes(id, p, h.at.EventTime); err != nil {
		return row, false, err
	}
	row.EventTime, err = r.eachLink(id, p, row.EventTime, func(string, *adjacency) {})
	return row, true, err
}

// iterateStated returns an iterator over what inputs have stated of attributes, nil if the files have nothing.
func iterateStated(db *pebble.DB) (*pebble.Iterator, error) {
	it, err := iterate(db, spaceAttribute)
	if err != nil || it.First() {
		return it, err
	}
	if err := it.Error(); err != nil {
		return it, engine.Failure(err)
	}
	return nil, it.Close()
}
