package shard

import (
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/stream/shard/engine"
)

// keyFilter rules out most keys that a key space of the state does not have, so that a new node or
// link need not be looked up in every file. It is a Bloom filter with all bits of one key in one
// cache line (Putze, Sanders, Singler, 2007). With more keys than it has room for, it rules out
// nothing.
type keyFilter struct {
	seed   maphash.Seed
	blocks [][8]uint64 // nil: nothing is ruled out
	room   int64       // how many more keys fit
}

// filterSize is how large a filter is.
type filterSize struct {
	bytes int
	room  int64 // keys
}

// Of absent nodes, 1 of 25 is not ruled out when the filter is full; of absent links, 1 of 8. Memory
// that no key has touched is not resident.
var (
	nodeFilterSize = filterSize{bytes: 1 << 20, room: 1 << 20}
	linkFilterSize = filterSize{bytes: 2 << 20, room: 3 << 20}
)

// fullFilters is the most states of a process that have filters of full size. More states share the memory
// of that many filters.
const fullFilters = 16

// shareFor returns the size of each filter if the given number of states have one.
func (s filterSize) shareFor(states int) filterSize {
	n := int64(max(states, fullFilters))
	return filterSize{bytes: s.bytes * fullFilters / int(n) &^ 63, room: s.room * fullFilters / n}
}

const keyFilterBits = 6 // set per key

// newKeyFilter reads all keys of a space; keys is a lower bound of their number. With prefix, the
// filter has these prefixes of the keys, too.
func newKeyFilter(db *pebble.DB, space byte, size filterSize, keys int64, prefix func(key []byte) []byte) (
	f *keyFilter, err error) {
	f = &keyFilter{seed: maphash.MakeSeed()}
	if keys > size.room {
		return f, nil
	}
	f.blocks, f.room = make([][8]uint64, size.bytes/64), size.room
	it, err := iterate(db, space)
	if err != nil {
		return nil, fmt.Errorf("read all keys of space %q: %w", space, engine.Failure(err))
	}
	for ok := it.First(); ok && f.blocks != nil; ok = it.Next() {
		f.add(it.Key())
		if prefix != nil {
			f.add(prefix(it.Key()))
		}
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("read all keys of space %q: %w", space, engine.Failure(err))
	}
	return f, nil
}

// add adds a key. It reports whether the key may have been there before.
func (f *keyFilter) add(key []byte) (had bool) {
	if f.blocks == nil {
		return true
	}
	block, h := f.place(key)
	if has(block, h) {
		return true
	}
	if f.room--; f.room < 0 {
		f.blocks = nil
		return false
	}
	for range keyFilterBits {
		block[h>>6&7] |= 1 << (h & 63)
		h >>= 9
	}
	return false
}

// mayHave is false only for keys that were never added.
func (f *keyFilter) mayHave(key []byte) bool { return f.blocks == nil || has(f.place(key)) }

func has(block *[8]uint64, h uint64) bool {
	for range keyFilterBits {
		if block[h>>6&7]&(1<<(h&63)) == 0 {
			return false
		}
		h >>= 9
	}
	return true
}

// place returns the block and the hash of a key. The upper bits of the hash choose the block, and
// the lower bits choose the bits there, 9 for each.
func (f *keyFilter) place(key []byte) (block *[8]uint64, h uint64) {
	h = maphash.Bytes(f.seed, key)
	return &f.blocks[(h>>32*uint64(len(f.blocks)))>>32], h
}
