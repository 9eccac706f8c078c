package shard

import (
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"
)

// nodeFilter rules out most ids without a node header, so that a new node need not be looked up in
// every file of the state. It is a Bloom filter with all bits of one id in one cache line (Putze,
// Sanders, Singler, 2007). With more nodes than it has room for, it rules out nothing.
type nodeFilter struct {
	seed   maphash.Seed
	blocks [][8]uint64 // nil: nothing is ruled out
	room   int64       // how many more ids fit
}

const (
	nodeFilterBytes = 1 << 20
	nodeFilterBits  = 6 // set per id
	// With one byte per id, 1 of 25 absent ids is not ruled out.
	nodeFilterRoom = nodeFilterBytes
)

// newNodeFilter reads the ids of all node headers; nodes is a lower bound of their number.
func newNodeFilter(db *pebble.DB, nodes int64) (f *nodeFilter, err error) {
	f = &nodeFilter{seed: maphash.MakeSeed()}
	if nodes > nodeFilterRoom {
		return f, nil
	}
	f.blocks, f.room = make([][8]uint64, nodeFilterBytes/64), nodeFilterRoom
	it, err := iterate(db, spaceHeader)
	if err != nil {
		return nil, fmt.Errorf("read the ids of all nodes: %w", engineFailure(err))
	}
	for ok := it.First(); ok; ok = it.Next() {
		f.add(string(it.Key()[1:]))
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("read the ids of all nodes: %w", engineFailure(err))
	}
	return f, nil
}

// add adds an id, which may have been added before.
func (f *nodeFilter) add(id string) {
	if f.blocks == nil || f.mayHave(id) {
		return
	}
	if f.room--; f.room < 0 {
		f.blocks = nil
		return
	}
	block, h := f.place(id)
	for range nodeFilterBits {
		block[h>>6&7] |= 1 << (h & 63)
		h >>= 9
	}
}

// mayHave is false only for ids that were never added.
func (f *nodeFilter) mayHave(id string) bool {
	if f.blocks == nil {
		return true
	}
	block, h := f.place(id)
	for range nodeFilterBits {
		if block[h>>6&7]&(1<<(h&63)) == 0 {
			return false
		}
		h >>= 9
	}
	return true
}

// place returns the block and the hash of an id. The upper bits of the hash choose the block, and
// the lower bits choose the bits there, 9 for each.
func (f *nodeFilter) place(id string) (block *[8]uint64, h uint64) {
	h = maphash.String(f.seed, id)
	return &f.blocks[(h>>32*uint64(len(f.blocks)))>>32], h
}
