package engine

import (
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"
)

// KeyFilter rules out most keys that a key space of the state does not have, so that a new node or
// link need not be looked up in every file. It is a Bloom filter with all bits of one key in one
// cache line (Putze, Sanders, Singler, 2007). With more keys than it has room for, it rules out
// nothing.
type KeyFilter struct {
	seed   maphash.Seed
	blocks [][8]uint64 // nil: nothing is ruled out
	room   int64       // how many more keys fit
}

// FilterSize is how large a filter is.
type FilterSize struct {
	Bytes int
	Room  int64 // keys
}

// FullFilters is the most states of a process that have filters of full size. More states share the memory
// of that many filters.
const FullFilters = 16

// ShareFor returns the size of each filter if the given number of states have one.
func (s FilterSize) ShareFor(states int) FilterSize {
	n := int64(max(states, FullFilters))
	return FilterSize{Bytes: s.Bytes * FullFilters / int(n) &^ 63, Room: s.Room * FullFilters / n}
}

const keyFilterBits = 6 // set per key

// NewKeyFilter reads all keys of a space; keys is a lower bound of their number. With prefix, the
// filter has these prefixes of the keys, too.
func NewKeyFilter(db *pebble.DB, space byte, size FilterSize, keys int64, prefix func(key []byte) []byte) (
	f *KeyFilter, err error) {
	f = &KeyFilter{seed: maphash.MakeSeed()}
	if keys > size.Room {
		return f, nil
	}
	f.blocks, f.room = make([][8]uint64, size.Bytes/64), size.Room
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
	if err != nil {
		return nil, fmt.Errorf("read all keys of space %q: %w", space, Failure(err))
	}
	for ok := it.First(); ok && f.blocks != nil; ok = it.Next() {
		f.Add(it.Key())
		if prefix != nil {
			f.Add(prefix(it.Key()))
		}
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("read all keys of space %q: %w", space, Failure(err))
	}
	return f, nil
}

// Add adds a key. It reports whether the key may have been there before.
func (f *KeyFilter) Add(key []byte) (had bool) {
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

// MayHave is false only for keys that were never added.
func (f *KeyFilter) MayHave(key []byte) bool { return f.blocks == nil || has(f.place(key)) }

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
func (f *KeyFilter) place(key []byte) (block *[8]uint64, h uint64) {
	h = maphash.Bytes(f.seed, key)
	return &f.blocks[(h>>32*uint64(len(f.blocks)))>>32], h
}
