package tfidf

import "slices"

// counter counts the document frequencies of some of the texts. Word ids are
// its own.
//
// A word brings the same runs of characters in every text, so they are
// looked up once for each distinct word, and counted once for each distinct
// word of a document.
type counter struct {
	opt   Options
	scan  scanner
	words *wordTable
	pairs *keyTable // pairKey of word ids
	chars *keyTable // packed runes
	runs  lists     // word id → ids of its character runs; empty with a budget
	parts [numParts]counts
	docs  uint32 // marks what has been counted in the current document

	pairKeys, keys []uint64 // scratch
	budget         *budget  // nil for none
}

// counts are the counts of one part, by id.
type counts struct {
	df   []int32
	last []uint32 // the document that counted it last
	// missed bounds what df may have missed while the n-gram was pruned; nil
	// without a budget.
	missed []int32
}

func newCounter(opt Options) *counter {
	c := &counter{opt: opt, scan: scanner{profile: opt.Profile}}
	if opt.MemoryBudget > 0 {
		c.budget = &budget{}
	}
	c.clear()
	return c
}

// clear forgets the words and what is made of them.
func (c *counter) clear() {
	c.words, c.pairs, c.chars = newWordTable(0), newKeyTable(nil), newKeyTable(nil)
	c.runs = lists{start: []int{0}}
}

// count adds a text to the document frequencies.
func (c *counter) count(text string) {
	c.docs++
	c.scan.begin(text)
	on := c.opt.enabledParts()
	prev := int32(-1)
	pairs := c.pairKeys[:0]
	for w := c.scan.next(); w != nil; w = c.scan.next() {
		id := c.words.intern(w)
		if on[Word2] && prev >= 0 {
			pairs = append(pairs, pairKey(prev, id))
		}
		prev = id
		// Part Word1 is kept also where it is left out: it says which words
		// the document has had.
		if c.hit(Word1, id) && on[Char3] {
			c.hitRuns(id, w)
		}
	}
	for _, key := range pairs {
		c.hit(Word2, c.pairs.intern(key))
	}
	c.pairKeys = pairs
	c.scan.text = ""
	if c.budget != nil {
		c.keepBudget()
	}
}

// hitRuns counts the character runs of a word.
func (c *counter) hitRuns(id int32, word []byte) {
	if c.budget != nil { // runs come and go
		c.keys = c.opt.Profile.appendRuns(c.keys[:0], word)
		for _, key := range c.keys {
			c.hit(Char3, c.chars.intern(key))
		}
		return
	}
	if int(id) == len(c.runs.start)-1 { // a new word
		c.keys = c.opt.Profile.appendRuns(c.keys[:0], word)
		slices.Sort(c.keys)
		for _, key := range slices.Compact(c.keys) {
			c.runs.ids = append(c.runs.ids, c.chars.intern(key))
		}
		c.runs.end()
	}
	for _, run := range c.runs.idsOf(id) {
		c.hit(Char3, run)
	}
}

// hit counts an n-gram unless the document has been counted for it, and
// reports whether it did.
func (c *counter) hit(p Part, id int32) bool {
	n := &c.parts[p]
	for int(id) >= len(n.df) {
		n.df, n.last = append(n.df, 0), append(n.last, 0)
		if c.budget != nil {
			n.missed = append(n.missed, c.budget.missed[p])
		}
	}
	if n.last[id] == c.docs {
		return false
	}
	n.last[id] = c.docs
	n.df[id]++
	return true
}
