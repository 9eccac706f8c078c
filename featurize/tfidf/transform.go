package tfidf

import (
	"math"
	"sync"

	"giantstream/featurize/internal/scatter"
	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
)

// scratch is what one Transform needs.
type scratch struct {
	scan  scanner
	keys  []uint64
	found []int32 // feature id of each n-gram, -1 for an unknown one
	sum   *scatter.Sum
	// ngrams counts the text transformed last.
	ngrams NGrams
}

// Transform returns Ψ(text), re-using the capacity of dst. The vector has
// length 1, or 0 entries if the text holds no known feature.
func (m *Model) Transform(text string, dst sparse.Vector) sparse.Vector {
	dst, _ = m.TransformCounting(text, dst)
	return dst
}

// TransformCounting is Transform, and counts the text's n-grams in the same pass.
func (m *Model) TransformCounting(text string, dst sparse.Vector) (sparse.Vector, NGrams) {
	dst.Index, dst.Value = dst.Index[:0], dst.Value[:0]
	s := m.pool.Get().(*scratch)
	defer m.pool.Put(s)
	dst = m.appendTo(dst, text, s)
	return dst, s.ngrams
}

// Counts returns how often each feature that the model knows occurs in a text, re-using the capacity of dst. Weigh
// makes Ψ(text) of them, in a small part of the time that it takes to find them.
func (m *Model) Counts(text string, dst sparse.Vector) (sparse.Vector, NGrams) {
	dst.Index, dst.Value = dst.Index[:0], dst.Value[:0]
	s := m.pool.Get().(*scratch)
	defer m.pool.Put(s)
	dst = m.appendCounts(dst, text, s)
	return dst, s.ngrams
}

// Weigh turns what Counts has returned into what Transform returns, in place.
func (m *Model) Weigh(counts sparse.Vector) sparse.Vector { return m.weigh(counts, 0) }

// TransformAll returns the matrix of Ψ of all texts, a row each (workers ≤ 0: one per CPU).
func (m *Model) TransformAll(texts []string, workers int) *sparse.Matrix {
	const block = 256
	workers = parallel.Workers(workers)
	c := &collector{out: &sparse.Matrix{Cols: m.Dim(), Start: make([]int64, 1, len(texts)+1)}}
	c.turn.L = &c.mu
	for _, text := range texts {
		c.bytesLeft += len(text)
	}
	type worker struct {
		scratch *scratch
		rows    sparse.Vector
		ends    []int
	}
	own := make([]worker, workers)
	parallel.ForEach(len(texts), block, workers, func(w, b, lo, hi int) {
		o := &own[w]
		if o.scratch == nil {
			o.scratch = m.pool.Get().(*scratch)
		}
		o.rows.Index, o.rows.Value, o.ends = o.rows.Index[:0], o.rows.Value[:0], o.ends[:0]
		size := 0
		for _, text := range texts[lo:hi] {
			o.rows = m.appendTo(o.rows, text, o.scratch)
			o.ends = append(o.ends, len(o.rows.Index))
			size += len(text)
		}
		c.add(b, o.rows, o.ends, size)
	})
	for _, o := range own {
		if o.scratch != nil {
			m.pool.Put(o.scratch)
		}
	}
	return c.out
}

// collector puts blocks of rows one after the other into one matrix, which it makes
// about as large as it will be: there is no second copy of what is the largest
// thing in memory.
type collector struct {
	mu        sync.Mutex
	turn      sync.Cond
	next      int // the block that is to come
	bytes     int // of the texts that the rows so far are from
	bytesLeft int
	out       *sparse.Matrix
}

// add appends a block: the rows of its texts, one after the other, and where each row ends. size
// is the texts' length in bytes. add waits until all blocks before this one have been added.
func (c *collector) add(block int, rows sparse.Vector, ends []int, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.next != block {
		c.turn.Wait()
	}
	c.next++
	c.bytes, c.bytesLeft = c.bytes+size, c.bytesLeft-size
	from := len(c.out.Index)
	if need := from + len(rows.Index); need > cap(c.out.Index) {
		// As the texts so far had it, and a tenth.
		room := need + int(1.1*float64(c.bytesLeft)*float64(need)/float64(max(1, c.bytes)))
		c.out.Index = append(make([]int32, 0, room), c.out.Index...)
		c.out.Value = append(make([]float32, 0, room), c.out.Value...)
	}
	c.out.Index, c.out.Value = append(c.out.Index, rows.Index...), append(c.out.Value, rows.Value...)
	for _, end := range ends {
		c.out.Start = append(c.out.Start, int64(from+end))
	}
	c.out.Rows += len(ends)
	c.turn.Broadcast()
}

// appendTo appends the entries of Ψ(text) to dst.
func (m *Model) appendTo(dst sparse.Vector, text string, s *scratch) sparse.Vector {
	from := len(dst.Index)
	return m.weigh(m.appendCounts(dst, text, s), from)
}

// appendCounts appends the text's features and how often it has each to dst.
func (m *Model) appendCounts(dst sparse.Vector, text string, s *scratch) sparse.Vector {
	m.find(s, text)
	known := s.found[:0]
	for _, id := range s.found {
		if id >= 0 {
			known = append(known, id)
		}
	}
	s.ngrams = NGrams{Total: int64(len(s.found)), Unknown: int64(len(s.found) - len(known))}
	s.sum.Increment(known)
	return s.sum.Drain(dst)
}

// weigh makes Ψ of the counts that dst has from an entry on.
func (m *Model) weigh(dst sparse.Vector, from int) sparse.Vector {
	var square [numParts]float64
	part, to := Part(0), from
	for k := from; k < len(dst.Index); k++ {
		id := dst.Index[k]
		w := dst.Value[k] * m.idf[id]
		if w <= 0 {
			continue
		}
		for int(id) >= m.first[part+1] {
			part++
		}
		square[part] += float64(w) * float64(w)
		dst.Index[to], dst.Value[to] = id, w
		to++
	}
	dst.Index, dst.Value = dst.Index[:to], dst.Value[:to]
	m.normalize(dst.Index[from:], dst.Value[from:], square)
	if m.column != nil {
		m.renumberRow(sparse.Vector{Index: dst.Index[from:], Value: dst.Value[from:]})
	}
	return dst
}

// normalize scales each part to length 1 and then the whole, which is to
// divide by √(number of parts that are not empty).
func (m *Model) normalize(index []int32, value []float32, square [numParts]float64) {
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

// find collects the features of a text, one entry per n-gram and occurrence.
func (m *Model) find(s *scratch, text string) {
	s.found = s.found[:0]
	s.scan.begin(text)
	withWords, withPairs := len(m.part(Word1)) > 0, len(m.pairs.keys) > 0
	previous, first := int32(-1), true
	for w := s.scan.next(); w != nil; w = s.scan.next() {
		id, _ := m.words.find(w)
		if withWords {
			feature := int32(-1)
			if id >= 0 {
				feature = m.single[id]
			}
			s.found = append(s.found, feature)
		}
		if withPairs && !first {
			feature := int32(-1)
			if id >= 0 && previous >= 0 {
				if pair, _ := m.pairs.find(pairKey(previous, id)); pair >= 0 {
					feature = int32(m.first[Word2]) + pair
				}
			}
			s.found = append(s.found, feature)
		}
		previous, first = id, false
		if id >= 0 {
			s.found = append(s.found, m.runs.idsOf(id)...)
			continue
		}
		s.keys = m.appendRuns(s.keys[:0], w)
		for _, key := range s.keys {
			s.found = append(s.found, m.run(key))
		}
	}
	s.scan.text = "" // do not keep the text alive in the pool
}
