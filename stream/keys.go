package stream

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Key spaces of the state. Format page: docs/format/state.md.
//
//	h <id>                  head: node version, flags, replace marks
//	t <id>                  text and class of a live node
//	a <id escaped> <id>     adjacency entry: owner, far end
//	d <window u64> <id>     dirty mark
//	m                       meta
const (
	spaceHead      = 'h'
	spaceText      = 't'
	spaceAdjacency = 'a'
	spaceDirty     = 'd'
	spaceMeta      = 'm'
)

func metaKey() []byte { return []byte{spaceMeta} }

func headKey(buf []byte, id string) []byte {
	return append(append(buf[:0], spaceHead), id...)
}

func textKey(buf []byte, id string) []byte {
	return append(append(buf[:0], spaceText), id...)
}

// adjacencyPrefix is the owner part of an adjacency key. Zero bytes in the
// owner are written 00 FF and 00 01 ends it, so no owner's prefix is the
// prefix of another's and keys sort by owner, then far end.
func adjacencyPrefix(buf []byte, owner string) []byte {
	buf = append(buf[:0], spaceAdjacency)
	for i := range len(owner) {
		buf = append(buf, owner[i])
		if owner[i] == 0 {
			buf = append(buf, 0xFF)
		}
	}
	return append(buf, 0, 1)
}

func adjacencyKey(buf []byte, owner, other string) []byte {
	return append(adjacencyPrefix(buf, owner), other...)
}

// splitAdjacencyKey is the inverse of adjacencyKey.
func splitAdjacencyKey(key []byte) (owner, other string, err error) {
	if len(key) == 0 || key[0] != spaceAdjacency {
		return "", "", fmt.Errorf("%w: key %q is no adjacency", ErrCorruptState, key)
	}
	var id []byte
	for rest := key[1:]; ; {
		i := bytes.IndexByte(rest, 0)
		if i < 0 || i+1 >= len(rest) {
			break
		}
		id = append(id, rest[:i]...)
		switch rest[i+1] {
		case 1:
			return string(id), string(rest[i+2:]), nil
		case 0xFF:
			id = append(id, 0)
			rest = rest[i+2:]
			continue
		}
		break
	}
	return "", "", fmt.Errorf("%w: adjacency key %q has no owner", ErrCorruptState, key)
}

func dirtyPrefix(window int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{spaceDirty}, uint64(window))
}

func dirtyKey(buf []byte, window int64, id string) []byte {
	buf = append(buf[:0], spaceDirty)
	buf = binary.BigEndian.AppendUint64(buf, uint64(window))
	return append(buf, id...)
}

// dirtyKeyPrefix is the length of a dirty key before the id.
const dirtyKeyPrefix = 1 + 8

// prefixEnd is the first key after all keys that start with prefix, which
// ends in a byte below 0xFF.
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
