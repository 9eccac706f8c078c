package tfidf

import (
	"errors"
	"hash/maphash"
	"math"
	"sync"

	"giantstream/featurize/internal/scatter"
)

// Model is a fitted vectorizer.
type Model struct {
	profile Profile
	docs    int
	// words are those that the kept features are made of, in byte order.
	words *wordTable
	// Features of part p are first[p] ≤ id < first[p+1]. keys[id] is a word
	// id, a pairKey of word ids, or packed runes; idf[id] its weight.
	first [numParts + 1]int
	keys  []uint64
	idf   []float32
	// column[id] is the number of a feature for others, and place its inverse; nil for the same. Only a model
	// of version 3 has them: an earlier release extended vocabularies, and put gains last, whatever their part.
	column, place []int32

	single []int32   // word id → feature id of the word alone, or -1
	runs   lists     // word id → feature ids of its character runs, one per occurrence
	pairs  *keyTable // ids count from first[Word2]
	chars  *keyTable // ids count from first[Char3]
	pool   sync.Pool // of *scratch
}

// newModel makes a model of the chosen features, each part in the order of its ids. Keys are numbers of words,
// which are in byte order, or packed runes.
func newModel(profile Profile, docs int, words *wordTable, parts [numParts][]feature) (*Model, error) {
	total := 0
	for _, chosen := range parts {
		total += len(chosen)
	}
	if total == 0 {
		return nil, ErrNoText
	}
	if total > math.MaxInt32 {
		return nil, errors.New("tfidf: more than 2^31 features; lower the budgets")
	}
	m := &Model{profile: profile, docs: docs, words: words,
		keys: make([]uint64, 0, total), idf: make([]float32, 0, total)}
	for p, chosen := range parts {
		m.first[p] = len(m.keys)
		for i, ft := range chosen {
			m.keys = append(m.keys, ft.key)
			if i > 0 && ft.df == chosen[i-1].df {
				m.idf = append(m.idf, m.idf[len(m.idf)-1])
			} else {
				m.idf = append(m.idf, idf(docs, ft.df))
			}
		}
	}
	m.first[numParts] = len(m.keys)
	m.compactWords()
	m.index()
	return m, nil
}

// idf follows PECOS to the bit: the quotient in float32, the logarithm in
// float64.
func idf(docs int, df int32) float32 {
	return float32(max(math.Log(float64(float32(docs)/float32(df+1))), 0))
}

// compactWords drops the words that no feature uses.
func (m *Model) compactWords() {
	used := make([]bool, m.words.len())
	for p, keys := range m.wordKeys() {
		for _, key := range keys {
			used[uint32(key)] = true
			if p == Word2 {
				used[key>>32] = true
			}
		}
	}
	ids := make([]int32, len(used))
	kept := &wordTable{start: []int64{0}}
	for id, u := range used {
		if u {
			ids[id] = int32(kept.len())
			kept.append(m.words.word(id))
		}
	}
	m.words = kept
	for p, keys := range m.wordKeys() {
		for i, key := range keys {
			if p == Word2 {
				keys[i] = pairKey(ids[key>>32], ids[uint32(key)])
			} else {
				keys[i] = uint64(ids[key])
			}
		}
	}
}

// wordKeys yields the keys that hold word ids.
func (m *Model) wordKeys() func(func(Part, []uint64) bool) {
	return func(yield func(Part, []uint64) bool) {
		_ = yield(Word1, m.part(Word1)) && yield(Word2, m.part(Word2))
	}
}

func (m *Model) part(p Part) []uint64 { return m.keys[m.first[p]:m.first[p+1]] }

// index builds the look-up tables from words and keys.
func (m *Model) index() {
	m.invert()
	m.words.seed = maphash.MakeSeed()
	m.words.rehash(slotsFor(m.words.len()))
	m.single = make([]int32, m.words.len())
	for i := range m.single {
		m.single[i] = -1
	}
	for i, key := range m.part(Word1) {
		m.single[key] = int32(i)
	}
	m.pairs, m.chars = newKeyTable(m.part(Word2)), newKeyTable(m.part(Char3))
	m.runs = lists{start: make([]int, 1, m.words.len()+1)}
	if len(m.chars.keys) > 0 {
		m.runs.ids = make([]int32, 0, m.words.bytes()) // a run begins at each character
	}
	var keys []uint64
	for id := range m.words.len() {
		keys = m.appendRuns(keys[:0], m.words.word(id))
		for _, key := range keys {
			m.runs.ids = append(m.runs.ids, m.run(key))
		}
		m.runs.end()
	}
	m.pool.New = func() any { return &scratch{scan: scanner{profile: m.profile}, sum: scatter.New(m.Dim())} }
}

// appendRuns appends the keys of a word's character runs if the model has
// character runs.
func (m *Model) appendRuns(keys []uint64, word []byte) []uint64 {
	if len(m.chars.keys) == 0 {
		return keys
	}
	return m.profile.appendRuns(keys, word)
}

// run returns the feature id of a character run, or -1.
func (m *Model) run(key uint64) int32 {
	if id, _ := m.chars.find(key); id >= 0 {
		return int32(m.first[Char3]) + id
	}
	return -1
}

// Dim returns the number of features.
func (m *Model) Dim() int { return len(m.keys) }

// Docs returns the number of documents of the fit.
func (m *Model) Docs() int { return m.docs }

// Profile returns how the model splits text.
func (m *Model) Profile() Profile { return m.profile }

// IDF returns the inverse document frequency of feature i.
func (m *Model) IDF(i int) float32 { return m.idf[m.placeOf(i)] }

// TextsWith returns how many of the texts that the model was fitted to have feature i, and one more, as its IDF counts
// them.
func (m *Model) TextsWith(i int) float64 {
	return max(1, float64(m.docs)*math.Exp(-float64(m.IDF(i))))
}

// PartOf returns the part that feature i belongs to.
func (m *Model) PartOf(i int) Part { return m.partAt(m.placeOf(i)) }

func (m *Model) partAt(id int) Part {
	p := Word1
	for id >= m.first[p+1] {
		p++
	}
	return p
}

// pair returns the words of a pair.
func (m *Model) pair(key uint64) (first, second string) {
	return string(m.words.word(int(key >> 32))), string(m.words.word(int(uint32(key))))
}

// Feature returns the n-gram of feature i for people: "w:kernel",
// "w:kernel module", "c: ker".
func (m *Model) Feature(i int) string {
	key := m.keys[m.placeOf(i)]
	switch m.PartOf(i) {
	case Word1:
		return "w:" + string(m.words.word(int(key)))
	case Word2:
		return "w:" + joined(m.pair(key))
	default:
		return "c:" + char3String(key)
	}
}
