package stream

import (
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"
)

// headFilter knows of most nodes without a head that there is none, so that a new
// node need not be looked up in every file of the state. It is a Bloom filter whose
// bits for one id lie in one cache line (Putze, Sanders, Singler, 2007). Beyond the number of nodes
// that it has room for it gives up.
type headFilter struct {
	seed   maphash.Seed
	blocks [][8]uint64 // nil: everything may be there
	room   int64       // ids that it still takes
}

const (
	headFilterBytes = 1 << 20
	headFilterBits  = 6 // set for an id
	// With one byte for each, one of 25 nodes that are not there is looked up.
	headFilterRoom = headFilterBytes
)

// newHeadFilter reads the ids of all heads; nodes is how many there are at least.
func newHeadFilter(db *pebble.DB, nodes int64) (f *headFilter, err error) {
	f = &headFilter{seed: maphash.MakeSeed()}
	if nodes > headFilterRoom {
		return f, nil
	}
	f.blocks, f.room = make([][8]uint64, headFilterBytes/64), headFilterRoom
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceHead}, UpperBound: []byte{spaceHead + 1}})
	if err != nil {
		return nil, fmt.Errorf("read the ids of all nodes: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		f.add(string(it.Key()[1:]))
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("read the ids of all nodes: %w", err)
	}
	return f, nil
}

// add enters an id, which may be there already.
func (f *headFilter) add(id string) {
	if f.blocks == nil || f.mayHave(id) {
		return
	}
	if f.room--; f.room < 0 {
		f.blocks = nil
		return
	}
	block, h := f.place(id)
	for range headFilterBits {
		block[h>>6&7] |= 1 << (h & 63)
		h >>= 9
	}
}

// mayHave is false only of ids that were never added.
func (f *headFilter) mayHave(id string) bool {
	if f.blocks == nil {
		return true
	}
	block, h := f.place(id)
	for range headFilterBits {
		if block[h>>6&7]&(1<<(h&63)) == 0 {
			return false
		}
		h >>= 9
	}
	return true
}

// place returns an id's block, which the upper bits of its hash name, and the
// hash, whose lower bits name its bits there, 9 for each.
func (f *headFilter) place(id string) (block *[8]uint64, h uint64) {
	h = maphash.String(f.seed, id)
	return &f.blocks[(h>>32*uint64(len(f.blocks)))>>32], h
}
