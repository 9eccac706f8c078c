package tfidf

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"

	"giantstream/featurize/internal/parallel"
)

// ErrNoText is returned by Fit when no feature is left to keep.
var ErrNoText = errors.New("tfidf: no features: the texts are empty, too few or all alike")

// Fitter counts document frequencies. It is not safe for concurrent use;
// AddAll uses several goroutines by itself.
type Fitter struct {
	opt      Options
	docs     int
	counters []*counter // one per worker
}

// NewFitter returns a Fitter, or an error that names every fault of opt.
func NewFitter(opt Options) (*Fitter, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	return &Fitter{opt: opt}, nil
}

// Docs returns the number of texts added so far.
func (f *Fitter) Docs() int { return f.docs }

// Add counts one document.
func (f *Fitter) Add(text string) {
	f.grow(1)
	f.counters[0].add(text)
	f.docs++
}

// AddAll counts documents on several goroutines (workers ≤ 0: one per CPU).
func (f *Fitter) AddAll(texts []string, workers int) {
	workers = parallel.Workers(workers)
	f.grow(workers)
	parallel.Each(len(texts), 256, workers, func(worker, _, lo, hi int) {
		for _, text := range texts[lo:hi] {
			f.counters[worker].add(text)
		}
	})
	f.docs += len(texts)
}

func (f *Fitter) grow(workers int) {
	for len(f.counters) < workers {
		f.counters = append(f.counters, newCounter(f.opt))
	}
}

// counter holds the document frequencies of one worker. Word ids are its own.
type counter struct {
	opt   Options
	scan  scanner
	words *wordTable
	// tables[Word1] is keyed by word id, tables[Word2] by pairKey,
	// tables[Char3] by packed runes. Values are document frequencies.
	tables [numParts]*keyTable
	doc    uint32
	chars  []uint64
}

func newCounter(opt Options) *counter {
	c := &counter{opt: opt, words: newWordTable(0)}
	c.scan.profile = opt.Profile
	for p := range c.tables {
		c.tables[p] = newKeyTable(0)
	}
	return c
}

func (c *counter) add(text string) {
	c.doc++
	c.scan.text = text
	parts := c.opt.Parts
	prev := int32(-1)
	for w := c.scan.next(); w != nil; w = c.scan.next() {
		id := c.words.intern(w)
		if parts[Word1].MaxFeatures > 0 {
			c.count(Word1, uint64(id))
		}
		if parts[Word2].MaxFeatures > 0 && prev >= 0 {
			c.count(Word2, pairKey(prev, id))
		}
		if parts[Char3].MaxFeatures > 0 {
			c.chars = appendChar3(c.chars[:0], w)
			for _, key := range c.chars {
				c.count(Char3, key)
			}
		}
		prev = id
	}
}

func (c *counter) count(p Part, key uint64) {
	if s := c.tables[p].at(key); s.stamp != c.doc {
		s.stamp = c.doc
		s.value++
	}
}

// feature is a candidate: an n-gram and its document frequency.
type feature struct {
	key uint64
	df  int32
}

// Fit chooses the features. The Fitter may take more texts and fit again.
func (f *Fitter) Fit() (*Model, error) {
	words, ids := f.mergeWords()
	var parts [numParts][]feature
	total := 0
	for p := range parts {
		parts[p] = f.choose(Part(p), ids)
		total += len(parts[p])
	}
	if total == 0 {
		return nil, ErrNoText
	}
	if total > math.MaxInt32 {
		return nil, errors.New("tfidf: more than 2^31 features; lower the budgets")
	}
	m := &Model{profile: f.opt.Profile, docs: f.docs, words: words}
	for p, chosen := range parts {
		m.first[p] = len(m.keys)
		for _, ft := range chosen {
			m.keys = append(m.keys, ft.key)
			m.idf = append(m.idf, idf(f.docs, ft.df))
		}
	}
	m.first[numParts] = len(m.keys)
	m.compactWords()
	m.index()
	return m, nil
}

// mergeWords puts the words of all counters in byte order, and returns for
// each counter the new ids of its words.
func (f *Fitter) mergeWords() (*wordTable, [][]int32) {
	type word struct {
		text        []byte
		counter, id int32
	}
	var all []word
	ids := make([][]int32, len(f.counters))
	size := 0
	for k, c := range f.counters {
		ids[k] = make([]int32, c.words.len())
		size += c.words.bytes()
		for id := range ids[k] {
			all = append(all, word{c.words.word(id), int32(k), int32(id)})
		}
	}
	slices.SortFunc(all, func(a, b word) int { return bytes.Compare(a.text, b.text) })
	merged := &wordTable{arena: make([]byte, 0, size), start: []int64{0}}
	for i, w := range all {
		if i == 0 || !bytes.Equal(w.text, all[i-1].text) {
			merged.arena = append(merged.arena, w.text...)
			merged.start = append(merged.start, int64(len(merged.arena)))
		}
		ids[w.counter][w.id] = int32(merged.len() - 1)
	}
	return merged, ids
}

// choose returns the features of a part in the order of their ids.
func (f *Fitter) choose(p Part, ids [][]int32) []feature {
	limits := f.opt.Parts[p]
	if limits.MaxFeatures == 0 {
		return nil
	}
	total := newKeyTable(0)
	for k, c := range f.counters {
		for key, df := range c.tables[p].all {
			switch p {
			case Word1:
				key = uint64(ids[k][key])
			case Word2:
				key = pairKey(ids[k][key>>32], ids[k][uint32(key)])
			}
			total.at(key).value += df
		}
	}
	// float32, as PECOS computes it.
	maxDF := int32(math.Round(float64(float32(limits.MaxDF) * float32(f.docs))))
	var chosen []feature
	for key, df := range total.all {
		if df >= int32(limits.MinDF) && df <= maxDF {
			chosen = append(chosen, feature{key, df})
		}
	}
	slices.SortFunc(chosen, func(a, b feature) int {
		return cmp.Or(cmp.Compare(a.df, b.df), cmp.Compare(a.key, b.key))
	})
	return slices.Clone(chosen[max(0, len(chosen)-limits.MaxFeatures):])
}

// idf follows PECOS to the bit: the quotient in float32, the logarithm in
// float64.
func idf(docs int, df int32) float32 {
	return float32(max(math.Log(float64(float32(docs)/float32(df+1))), 0))
}
