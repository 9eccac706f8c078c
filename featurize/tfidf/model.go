package tfidf

import (
	"math"
	"slices"
	"sync"

	"giantstream/featurize/internal/parallel"
	"giantstream/featurize/sparse"
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

	single []int32 // word id → feature id of the word alone, or -1
	lookup [numParts]*keyTable
	pool   sync.Pool // of *scratch
}

// scratch is what one Transform needs.
type scratch struct {
	scan  scanner
	chars []uint64
	found []int32 // feature id of each occurrence
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
			kept.arena = append(kept.arena, m.words.word(id)...)
			kept.start = append(kept.start, int64(len(kept.arena)))
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
	t := newWordTable(m.words.len())
	t.arena, t.start = m.words.arena, m.words.start
	t.slots = make([]int32, slotsFor(t.len())/2)
	t.grow()
	m.words = t
	m.single = make([]int32, t.len())
	for i := range m.single {
		m.single[i] = -1
	}
	for i, key := range m.part(Word1) {
		m.single[key] = int32(i)
	}
	for _, p := range []Part{Word2, Char3} {
		m.lookup[p] = newKeyTable(len(m.part(p)))
		for i, key := range m.part(p) {
			m.lookup[p].at(key).value = int32(m.first[p] + i)
		}
	}
	m.pool.New = func() any { return &scratch{scan: scanner{profile: m.profile}} }
}

// Dim returns the number of features.
func (m *Model) Dim() int { return len(m.keys) }

// Docs returns the number of documents of the fit.
func (m *Model) Docs() int { return m.docs }

// Profile returns how the model splits text.
func (m *Model) Profile() Profile { return m.profile }

// IDF returns the inverse document frequency of feature i.
func (m *Model) IDF(i int) float32 { return m.idf[i] }

// PartOf returns the part that feature i belongs to.
func (m *Model) PartOf(i int) Part {
	p := Word1
	for i >= m.first[p+1] {
		p++
	}
	return p
}

// Feature returns the n-gram of feature i for people: "w:kernel",
// "w:kernel module", "c: ker".
func (m *Model) Feature(i int) string {
	key := m.keys[i]
	switch m.PartOf(i) {
	case Word1:
		return "w:" + string(m.words.word(int(key)))
	case Word2:
		return "w:" + string(m.words.word(int(key>>32))) + " " + string(m.words.word(int(uint32(key))))
	default:
		return "c:" + char3String(key)
	}
}

// Transform returns Ψ(text), re-using the capacity of dst. The vector has
// length 1, or 0 entries if the text holds no known feature.
func (m *Model) Transform(text string, dst sparse.Vector) sparse.Vector {
	dst.Index, dst.Value = dst.Index[:0], dst.Value[:0]
	return m.appendTo(dst, text)
}

// TransformAll returns the matrix of Ψ of all texts, a row each (workers ≤ 0: one per CPU).
func (m *Model) TransformAll(texts []string, workers int) *sparse.Matrix {
	const block = 256
	parts := make([]sparse.Vector, parallel.Blocks(len(texts), block))
	out := &sparse.Matrix{Rows: len(texts), Cols: m.Dim(), Start: make([]int64, len(texts)+1)}
	parallel.Each(len(texts), block, workers, func(_, b, lo, hi int) {
		for i, text := range texts[lo:hi] {
			parts[b] = m.appendTo(parts[b], text)
			out.Start[lo+i+1] = int64(len(parts[b].Index)) // within the block, for now
		}
	})
	var nnz int64
	for b, part := range parts {
		for i := b * block; i < min(len(texts), (b+1)*block); i++ {
			out.Start[i+1] += nnz
		}
		nnz += int64(len(part.Index))
	}
	out.Index, out.Value = make([]int32, nnz), make([]float32, nnz)
	parallel.Each(len(parts), 1, workers, func(_, b, _, _ int) {
		at := out.Start[b*block]
		copy(out.Index[at:], parts[b].Index)
		copy(out.Value[at:], parts[b].Value)
		parts[b] = sparse.Vector{}
	})
	return out
}

// appendTo appends the entries of Ψ(text) to dst.
func (m *Model) appendTo(dst sparse.Vector, text string) sparse.Vector {
	s := m.pool.Get().(*scratch)
	m.find(s, text)
	slices.Sort(s.found)
	from := len(dst.Index)
	var square [numParts]float64
	part := Part(0)
	for i := 0; i < len(s.found); {
		id := s.found[i]
		j := i + 1
		for j < len(s.found) && s.found[j] == id {
			j++
		}
		if w := float32(j-i) * m.idf[id]; w > 0 {
			for int(id) >= m.first[part+1] {
				part++
			}
			square[part] += float64(w) * float64(w)
			dst.Index = append(dst.Index, id)
			dst.Value = append(dst.Value, w)
		}
		i = j
	}
	m.pool.Put(s)
	m.normalise(dst.Index[from:], dst.Value[from:], square)
	return dst
}

// normalise scales each part to length 1 and then the whole, which is to
// divide by √(number of parts that are not empty).
func (m *Model) normalise(index []int32, value []float32, square [numParts]float64) {
	parts := 0.0
	for _, q := range square {
		if q > 0 {
			parts++
		}
	}
	i := 0
	for p, q := range square {
		scale := 1 / math.Sqrt(q*parts)
		for ; i < len(index) && int(index[i]) < m.first[p+1]; i++ {
			value[i] = float32(float64(value[i]) * scale)
		}
	}
}

// find collects the features of a text, one entry per occurrence.
func (m *Model) find(s *scratch, text string) {
	s.found = s.found[:0]
	s.scan.text = text
	prev := int32(-1)
	pairs, chars := m.lookup[Word2], m.lookup[Char3]
	for w := s.scan.next(); w != nil; w = s.scan.next() {
		id, _ := m.words.find(w)
		if id >= 0 {
			if f := m.single[id]; f >= 0 {
				s.found = append(s.found, f)
			}
			if prev >= 0 && pairs.n > 0 {
				if f, ok := pairs.get(pairKey(prev, id)); ok {
					s.found = append(s.found, f)
				}
			}
		}
		prev = id
		if chars.n > 0 {
			s.chars = appendChar3(s.chars[:0], w)
			for _, key := range s.chars {
				if f, ok := chars.get(key); ok {
					s.found = append(s.found, f)
				}
			}
		}
	}
	s.scan.text = "" // do not keep the text alive in the pool
}
