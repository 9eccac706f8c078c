package parquetio

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errShort: the bytes end before the Thrift structure does.
var errShort = errors.New("a Thrift structure is cut off")

const (
	// maxThriftDepth bounds the nesting of a structure. Parquet's own has eight levels.
	maxThriftDepth = 32
	// maxThriftStructs bounds the structures in lists, each of which the library makes of one byte or
	// more: a footer has one per column and row group.
	maxThriftStructs = 250_000
)

// Types of Thrift's compact protocol
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt64  = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// thriftWalk walks a structure without making anything of it, and checks that it is as long as its
// lists and strings say. The Parquet library takes their lengths for granted and allocates them.
type thriftWalk struct {
	b  []byte
	at int
	// path is the field, from the outermost structure on.
	path    []int16
	structs int
	// integer, if set, gets the integers.
	integer func(path []int16, v int64)
}

// structure walks all fields of a structure.
func (w *thriftWalk) structure() error {
	if len(w.path) >= maxThriftDepth {
		return fmt.Errorf("%w: nested deeper than %d levels", ErrCorrupt, maxThriftDepth)
	}
	w.path = append(w.path, 0)
	field := &w.path[len(w.path)-1]
	for {
		head, err := w.byte()
		if err != nil {
			return err
		}
		if head == 0 {
			w.path = w.path[:len(w.path)-1]
			return nil
		}
		if delta := head >> 4; delta != 0 {
			*field += int16(delta)
		} else {
			id, err := w.zigzag()
			if err != nil {
				return err
			}
			*field = int16(id)
		}
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse { // the type is the value
			if err := w.value(kind); err != nil {
				return err
			}
			field = &w.path[len(w.path)-1]
		}
	}
}

func (w *thriftWalk) value(kind byte) error {
	switch kind {
	case thriftTrue, thriftFalse, thriftByte: // in a list, booleans have a byte
		return w.skip(1)
	case thriftByte + 1, thriftByte + 2, thriftInt64:
		v, err := w.zigzag()
		if err == nil && w.integer != nil {
			w.integer(w.path, v)
		}
		return err
	case thriftDouble:
		return w.skip(8)
	case thriftBinary:
		n, err := w.uvarint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case thriftList, thriftSet:
		return w.list()
	case thriftMap:
		return w.pairs()
	case thriftStruct:
		return w.structure()
	}
	return fmt.Errorf("%w: Thrift type %d", ErrCorrupt, kind)
}

func (w *thriftWalk) list() error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = w.uvarint(); err != nil {
			return err
		}
	}
	return w.elements(n, head&15)
}

func (w *thriftWalk) pairs() error {
	n, err := w.uvarint()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := w.byte()
	if err != nil {
		return err
	}
	for range min(n, uint64(len(w.b))) {
		if err := w.elements(1, kinds>>4); err != nil {
			return err
		}
		if err := w.elements(1, kinds&15); err != nil {
			return err
		}
	}
	return nil
}

func (w *thriftWalk) elements(n uint64, kind byte) error {
	if n > uint64(len(w.b)-w.at) { // each has a byte at least
		return errShort
	}
	if kind == thriftStruct {
		if w.structs += int(n); w.structs > maxThriftStructs {
			return fmt.Errorf("%w: more than %d columns, row groups and other parts in the footer; split the file",
				ErrCorrupt, maxThriftStructs)
		}
	}
	for range n {
		if err := w.value(kind); err != nil {
			return err
		}
	}
	return nil
}

func (w *thriftWalk) byte() (byte, error) {
	if w.at >= len(w.b) {
		return 0, errShort
	}
	w.at++
	return w.b[w.at-1], nil
}

func (w *thriftWalk) skip(n uint64) error {
	if n > uint64(len(w.b)-w.at) {
		return errShort
	}
	w.at += int(n)
	return nil
}

func (w *thriftWalk) uvarint() (uint64, error) {
	v, n := binary.Uvarint(w.b[w.at:])
	switch {
	case n == 0:
		return 0, errShort
	case n < 0:
		return 0, fmt.Errorf("%w: a varint of more than 64 bits", ErrCorrupt)
	}
	w.at += n
	return v, nil
}

func (w *thriftWalk) zigzag() (int64, error) {
	u, err := w.uvarint()
	return int64(u>>1) ^ -int64(u&1), err
}
