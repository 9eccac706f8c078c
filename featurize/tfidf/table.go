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
	t.append(w)
	t.slots[slot] = id + 1
	if 2*t.len() > len(t.slots) {
		t.rehash(2 * len(t.slots))
	}
	return id
}

// append adds a word that find cannot find before the next rehash.
func (t *wordTable) append(w []byte) {
	t.arena = append(t.arena, w...)
	t.start = append(t.start, int64(len(t.arena)))
}

func (t *wordTable) rehash(slots int) {
	t.slots = make([]int32, slots)
	mask := len(t.slots) - 1
	for id := range t.len() {
		s := int(t.hash(t.word(id))) & mask
		for t.slots[s] != 0 {
			s = (s + 1) & mask
		}
		t.slots[s] = int32(id) + 1
	}
}

// keyTable gives n-gram keys dense ids in the order of their arrival. A slot
// holds id+1, 0 is free: 4 bytes, so that a large table stays in the caches
// longer than its keys would.
type keyTable struct {
	keys  []uint64
	slots []int32 // length a power of two, at most half full
}

// newKeyTable returns a table of these keys, which are distinct; key i has id i.
func newKeyTable(keys []uint64) *keyTable {
	t := &keyTable{keys: keys}
	t.rehash(slotsFor(len(keys)))
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

// find returns the id of key, or -1 and the free slot it would take.
func (t *keyTable) find(key uint64) (id int32, slot int) {
	mask := len(t.slots) - 1
	for s := int(mix(key)) & mask; ; s = (s + 1) & mask {
		id := t.slots[s] - 1
		if id < 0 || t.keys[id] == key {
			return id, s
		}
	}
}

// intern returns the id of key, adding it if it is new.
func (t *keyTable) intern(key uint64) int32 {
	id, slot := t.find(key)
	if id >= 0 {
		return id
	}
	id = int32(len(t.keys))
	t.keys = append(t.keys, key)
	t.slots[slot] = id + 1
	if 2*len(t.keys) > len(t.slots) {
		t.rehash(2 * len(t.slots))
	}
	return id
}

func (t *keyTable) rehash(slots int) {
	t.slots = make([]int32, slots)
	mask := slots - 1
	for id, key := range t.keys {
		s := int(mix(key)) & mask
		for t.slots[s] != 0 {
			s = (s + 1) & mask
		}
		t.slots[s] = int32(id) + 1
	}
}

// lists holds a list of ids for each of a number of things: list i is
// ids[start[i]:start[i+1]].
type lists struct {
	start []int
	ids   []int32
}

func (l *lists) idsOf(i int32) []int32 { return l.ids[l.start[i]:l.start[i+1]] }

// end ends a list; the next one starts here.
func (l *lists) end() { l.start = append(l.start, len(l.ids)) }
