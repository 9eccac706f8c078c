package shard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

// Key spaces of the state. Format page: docs/format/state.md.
//
//	h <id>                  node header: flags, node version, replace marks
//	t <id>                  text and class of a live node
//	a <id escaped> <id> [00 <kind> [00]]  adjacency entry: owner, far end, kind of the link
//	p <id escaped> <input>  attributes of a node that an input has stated
//	v <id escaped> <input>  vectors of a node that an input has stated
//	o <input> <id>          order
//	d <window u64> <id>     dirty mark of a node
//	e <window u64> <input> <id>  dirty mark of an order
//	f <window u64> <id escaped> <input>  dirty mark of vectors
//	m                       meta
const (
	spaceHeader     = 'h'
	spaceText       = 't'
	spaceAdjacency  = 'a'
	spaceAttribute  = 'p'
	spaceVectors    = 'v'
	spaceOrder      = 'o'
	spaceDirty      = 'd'
	spaceOrderDue   = 'e'
	spaceVectorsDue = 'f'
	spaceMeta       = 'm'
)

// Kinds of dirty marks, which are the values of their keys.
const (
	// markDue: the row has changed and must be written.
	markDue = 'd'
	// markAgain: the row must be written as it is, so that the node is encoded again.
	markAgain = 'a'
	// markAttributes: of what the row says, nothing but attributes and event time has changed. A row of the
	// attributes must be written, unless the node's own is.
	markAttributes = 'p'
	// markSuspect: facts about the node changed without changing its row. Together with what
	// another worker commits they may change the row, so the mark becomes due if this state is
	// taken up after another worker has committed.
	markSuspect = 's'
)

// markOf is the kind of a mark in the files, 0 for one that does not decode.
func markOf(value []byte) byte {
	if len(value) != 1 {
		return 0
	}
	return value[0]
}

// outweighs reports whether a node that has mark b gets mark a.
func outweighs(a, b byte) bool {
	weight := func(kind byte) int { return strings.IndexByte(marksByWeight, kind) }
	return weight(a) > weight(b)
}

// marksByWeight are no mark and the kinds: a later one covers what an earlier one is for.
const marksByWeight = "\x00spad"

// nodeMarks are the kinds of marks for which a node's own row is written.
const nodeMarks = "ad"

// iterate returns an iterator over one key space.
func iterate(db *pebble.DB, space byte) (*pebble.Iterator, error) {
	return db.NewIter(&pebble.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
}

func metaKey() []byte { return []byte{spaceMeta} }

func headerKey(buf []byte, id string) []byte {
	return append(append(buf[:0], spaceHeader), id...)
}

func textKey(buf []byte, id string) []byte {
	return append(append(buf[:0], spaceText), id...)
}

// textKeyBytes is the length of textKey.
func textKeyBytes(id string) int { return 1 + len(id) }

// adjacencyPrefix is the owner's part of an adjacency key. A zero byte in the owner is written 00
// FF, and 00 01 ends the owner. So no owner's prefix is the prefix of another's, and keys sort by
// owner, then far end.
func adjacencyPrefix(buf []byte, owner string) []byte { return ownerPrefix(buf, spaceAdjacency, owner) }

// attributeKey is the key of what an input has stated of a node's attributes.
func attributeKey(buf []byte, id string, input byte) []byte {
	return append(ownerPrefix(buf, spaceAttribute, id), input)
}

func ownerPrefix(buf []byte, space byte, owner string) []byte {
	buf = append(buf[:0], space)
	if strings.IndexByte(owner, 0) < 0 {
		return append(append(buf, owner...), 0, 1)
	}
	for i := range len(owner) {
		buf = append(buf, owner[i])
		if owner[i] == 0 {
			buf = append(buf, 0xFF)
		}
	}
	return append(buf, 0, 1)
}

// adjacencyPrefixOf returns the adjacencyPrefix that an adjacency key begins with.
func adjacencyPrefixOf(key []byte) []byte {
	if end := bytes.Index(key, []byte{0, 1}); end >= 0 {
		return key[:end+2]
	}
	return key
}

func adjacencyKey(buf []byte, owner, other string) []byte {
	return append(adjacencyPrefix(buf, owner), other...)
}

// farEnd names a link of an owner by its far end and its kind: the end, and for a kind 00 and the kind's
// name, and 00 if the kind is directed. Ids and names have no zero bytes, so links sort by end, then kind.
func farEnd(other string, kind mutation.Kind) string {
	switch {
	case kind == mutation.Kind{}:
		return other
	case kind.Directed:
		return other + "\x00" + kind.Name + "\x00"
	}
	return other + "\x00" + kind.Name
}

// splitFarEnd is the inverse of farEnd.
func splitFarEnd(far string) (other string, kind mutation.Kind) {
	other, name, _ := strings.Cut(far, "\x00")
	kind.Name, kind.Directed = strings.CutSuffix(name, "\x00")
	return other, kind
}

// key implements registerID.
func (a orderID) key(buf []byte) []byte {
	return append(append(buf[:0], spaceOrder, a.input), a.id...)
}

// orderOfKey returns the order that a key names. Its first byte is of no meaning.
func orderOfKey(key []byte) (orderID, error) {
	if len(key) < 3 {
		return orderID{}, fmt.Errorf("%w: a key of an order has %d bytes", errCorruptState, len(key))
	}
	return orderID{input: key[1], id: string(key[2:])}, nil
}

// markSpaces have the marks of nodes, of orders and of vectors.
var markSpaces = []byte{spaceDirty, spaceOrderDue, spaceVectorsDue}

// markPrefix is what the keys of the marks of a window begin with.
func markPrefix(space byte, window int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{space}, uint64(window))
}

func dirtyKey(buf []byte, window int64, id string) []byte {
	buf = append(buf[:0], spaceDirty)
	buf = binary.BigEndian.AppendUint64(buf, uint64(window))
	return append(buf, id...)
}

// markKeyPrefix is the length of the key of a mark before what it marks.
const markKeyPrefix = 1 + 8

// prefixEnd is the first key after all keys that start with prefix, nil if there is none.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xFF {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// lookUp calls f with a key's value, if there is one. f must not keep the value, and fails only if it
// does not decode.
func lookUp(db *pebble.DB, key []byte, f func(value []byte) error) error {
	value, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return engine.Failure(err)
	}
	return engine.Failure(errors.Join(f(value), closer.Close()))
}

// IDsOf returns the ids of nodes that an entry of a state names: none, one, an owner and a far end, or the items of an
// order.
func IDsOf(key, value []byte) (ids [][]byte) {
	if len(key) == 0 {
		return nil
	}
	switch key[0] {
	case spaceHeader, spaceText:
		return [][]byte{key[1:]}
	case spaceAdjacency:
		owner, err := ownerOf(key)
		if err != nil {
			return nil
		}
		far, _, _ := bytes.Cut(bytes.TrimPrefix(key, adjacencyPrefixOf(key)), []byte{0})
		return [][]byte{owner, far}
	case spaceAttribute, spaceVectors:
		if owner, err := ownerOf(key); err == nil {
			return [][]byte{owner}
		}
	case spaceDirty:
		if len(key) > markKeyPrefix {
			return [][]byte{key[markKeyPrefix:]}
		}
	case spaceVectorsDue:
		if len(key) > markKeyPrefix {
			if owner, err := ownerOf(key[markKeyPrefix-1:]); err == nil {
				return [][]byte{owner}
			}
		}
	case spaceOrder:
		if o, err := decodeOrder(value); err == nil {
			for i := range o.lines {
				ids = append(ids, []byte(o.lines[i].item))
			}
		}
	}
	return ids
}

// TextOf returns the text that an entry of a state has, nil for an entry that is not a node's text.
func TextOf(key, value []byte) []byte {
	if len(key) == 0 || key[0] != spaceText {
		return nil
	}
	text, _, err := decodeText(value)
	if err != nil {
		return value
	}
	return []byte(text)
}
