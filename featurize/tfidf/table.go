package tfidf

import (
	"bytes"
	"hash/maphash"
)

// wordTable gives words dense ids in the order of their arrival. Words lie in
// one arena; a slot holds id+1, 0 is free. The hash is seeded per process,
// so that no text can be made to collide; nothing that lasts depends on it.
type wordTable struct {
	seed  maphash.Seed
	arena []byte
	start []int64 // word id is arena[start[id]:start[id+1]]
	slots []int32 // length a power of two, at most half full
}

func newWordTable(words int) *wordTable {
	return &wordTable{seed: maphash.MakeSeed(), start: []int64{0}, slots: make([]int32, slotsFor(words))}
}

// slotsFor returns a power of two that holds n entries at most half full.
func slotsFor(n int) int {
	s := 16
	for s < 2*(n+1) {
		s *= 2
	}
	return s
}

func (t *wordTable) len() int             { return len(t.start) - 1 }
func (t *wordTable) word(id int) []byte   { return t.arena[t.start[id]:t.start[id+1]] }
func (t *wordTable) bytes() (n int)       { return len(t.arena) }
func (t *wordTable) hash(w []byte) uint64 { return maphash.Bytes(t.seed, w) }

// find returns the id of w, or -1 and the free slot it would take.
func (t *wordTable) find(w []byte) (id int32, slot int) {
	mask := len(t.slots) - 1
	for s := int(t.hash(w)) & mask; ; s = (s + 1) & mask {
		id := t.slots[s] - 1
		if id < 0 {
			return -1, s
		}
		if bytes.Equal(t.word(int(id)), w) {
			return id, s
		}
	}
}

// intern returns the id of w, adding it if it is new.
func (t *wordTable) intern(w []byte) int32 {
	id, slot := t.find(w)
	if id >= 0 {
		return id
	}
	id = int32(t.len())
	t.arena = append(t.arena, w...)
	t.start = append(t.start, int64(len(t.arena)))
	t.slots[slot] = id + 1
	if 2*t.len() > len(t.slots) {
		t.grow()
	}
	return id
}

func (t *wordTable) grow() {
	t.slots = make([]int32, 2*len(t.slots))
	mask := len(t.slots) - 1
	for id := range t.len() {
		s := int(t.hash(t.word(id))) & mask
		for t.slots[s] != 0 {
			s = (s + 1) & mask
		}
		t.slots[s] = int32(id) + 1
	}
}

// noKey marks a free slot of a keyTable; no n-gram has this key.
const noKey = ^uint64(0)

// keyTable maps n-gram keys to an int32, with a stamp per key that tells
// whether the current document has been counted. Open addressing, at most half
// full.
type keyTable struct {
	slots []keySlot
	n     int
}

type keySlot struct {
	key   uint64
	value int32
	stamp uint32
}

func newKeyTable(n int) *keyTable {
	t := &keyTable{slots: make([]keySlot, slotsFor(n))}
	for i := range t.slots {
		t.slots[i].key = noKey
	}
	return t
}

// mix spreads a key over the slots (the finaliser of MurmurHash3).
func mix(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}

// at returns the slot of key, adding it with value 0 if it is new. The
// pointer is valid until the next call.
func (t *keyTable) at(key uint64) *keySlot {
	if 2*t.n >= len(t.slots) {
		t.grow()
	}
	s := t.probe(key)
	if s.key == noKey {
		s.key = key
		t.n++
	}
	return s
}

// get returns the value of key and whether it is there.
func (t *keyTable) get(key uint64) (int32, bool) {
	s := t.probe(key)
	return s.value, s.key == key
}

func (t *keyTable) probe(key uint64) *keySlot {
	mask := uint64(len(t.slots) - 1)
	for i := mix(key) & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.key == key || s.key == noKey {
			return s
		}
	}
}

func (t *keyTable) grow() {
	old := t.slots
	t.slots = newKeyTable(len(old)).slots
	for _, s := range old {
		if s.key != noKey {
			*t.probe(s.key) = s
		}
	}
}

// all yields the keys and values, in no particular order.
func (t *keyTable) all(yield func(key uint64, value int32) bool) {
	for i := range t.slots {
		if s := &t.slots[i]; s.key != noKey && !yield(s.key, s.value) {
			return
		}
	}
}
