package tfidf

import "slices"

// budget bounds the memory of a counter by forgetting n-grams that are rare so far:
// lossy counting (Manku and Motwani, "Approximate frequency counts over data
// streams", VLDB 2002) with windows that end when the memory is full.
//
// An n-gram is stored with the count since it came (back), df, and with missed: how much
// may have been forgotten before. Its true frequency is at least df and
// at most df + missed. Pruning forgets all n-grams with df + missed ≤ b, where b is the
// median of df + missed, and never falls; n-grams that come later start with missed
// = b. So a forgotten n-gram was in at most b documents, and every n-gram in more than b
// documents is counted.
//
// b is at most 2·M/c for M counts in a table of c n-grams: of what a pruning finds, half
// exceeds the last b by the new b's increase at least, and each of these units has been
// counted since.
type budget struct {
	missed [numParts]int32 // b of each part
}

// What the memory is for. An n-gram takes 20 bytes in counts and keys, up to
// 16 in slots, a quarter of slack as slices grow, and 16 while Fit sorts.
const (
	bytesPerKey  = 64
	bytesPerWord = 112 // plus its letters
	minBudget    = 1 << 20
)

// limits returns how many pairs and character runs there may be, and how
// many bytes the words may take: half, an eighth and three eighths of the budget.
func (c *counter) limits() (pairs, chars, wordBytes int) {
	b := int(c.opt.MemoryBudget)
	return b / 2 / bytesPerKey, b / 8 / bytesPerKey, b * 3 / 8
}

func (c *counter) wordBytes() int {
	return c.words.len()*bytesPerWord + c.words.bytes()*5/4
}

// keepBudget prunes after a document that took more than there is.
func (c *counter) keepBudget() {
	pairs, chars, wordBytes := c.limits()
	if len(c.pairs.keys) > pairs {
		c.prune(Word2)
	}
	if len(c.chars.keys) > chars {
		c.prune(Char3)
	}
	if c.wordBytes() > wordBytes {
		// A word stays while a pair of it is counted. Leave some room, so that
		// pruning is rare.
		for c.wordBytes() > wordBytes*3/4 && c.words.len() > 0 {
			c.prune(Word1, Word2)
		}
	}
}

// prune forgets at least half of the n-grams of these parts, and the words
// that nothing needs any more.
func (c *counter) prune(parts ...Part) {
	for _, p := range parts {
		n := &c.parts[p]
		if len(n.df) == 0 {
			continue
		}
		upper := make([]int32, len(n.df))
		for id, df := range n.df {
			upper[id] = df + n.missed[id]
		}
		slices.Sort(upper)
		c.budget.missed[p] = max(c.budget.missed[p], upper[len(upper)/2])
	}
	old := *c
	c.clear()
	c.parts = [numParts]counts{}
	keep := func(p Part, id int) bool {
		n := &old.parts[p]
		return !slices.Contains(parts, p) || n.df[id]+n.missed[id] > c.budget.missed[p]
	}
	c.docs = 0 // between documents, nothing is marked
	for id, key := range old.chars.keys {
		if keep(Char3, id) {
			c.restore(Char3, c.chars.intern(key), &old.parts[Char3], id)
		}
	}
	needed := make([]bool, old.words.len())
	for id := range needed {
		needed[id] = old.opt.enabledParts()[Word1] && keep(Word1, id)
	}
	for id, key := range old.pairs.keys {
		if keep(Word2, id) {
			needed[key>>32], needed[uint32(key)] = true, true
		}
	}
	ids := make([]int32, len(needed))
	for id, need := range needed {
		if need {
			ids[id] = c.words.intern(old.words.word(id))
			c.restore(Word1, ids[id], &old.parts[Word1], id)
		}
	}
	for id, key := range old.pairs.keys {
		if keep(Word2, id) {
			c.restore(Word2, c.pairs.intern(pairKey(ids[key>>32], ids[uint32(key)])), &old.parts[Word2], id)
		}
	}
}

// restore gives a new n-gram the counts that it had under its old id.
func (c *counter) restore(p Part, id int32, from *counts, old int) {
	c.hit(p, id) // makes room
	c.parts[p].df[id], c.parts[p].missed[id] = from.df[old], from.missed[old]
}
