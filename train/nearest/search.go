package nearest

import (
	"cmp"
	"math/bits"
	"slices"

	"giantstream/train/numeric"
)

// Neighbour is a vector found near a query.
type Neighbour struct {
	ID     string
	Cosine float32
}

const (
	// few vectors that may be an answer are all compared: that takes a fraction of a millisecond.
	few = 2_000
	// sparse is how many vectors there are for each that may be an answer if those are found by their handles rather
	// than in the order of memory, which is a tenth of the time a vector.
	sparse = 128
)

// Search returns the k vectors that have the highest cosine with a query, best first. in says which handles may be an
// answer, by bit h%64 of word h/64; nil for all. If there are k such vectors, k are returned. A query of length 0 has
// no cosine with anything, and no answer. lengths, if not nil, is what the cosine of a handle is multiplied by: a
// vector is longer than 1, say, where it has more numbers than the query. Then all vectors are compared, since cells
// are of vectors that are alike in all numbers.
//
// Cells are looked into, the best first: without in, as many as Calibrate has found to be enough; with in, until it is
// not likely that those left have a better answer. If few may be an answer, all of them are compared.
func (x *Index) Search(query []float32, k int, in []uint64, lengths func(handle int32) float32) []Neighbour {
	unit := slices.Clone(query)
	if k <= 0 || len(query) != x.dim || numeric.Normalize(unit) == 0 {
		return nil
	}
	s := x.newSearch(unit, k, in)
	s.lengths = lengths
	switch { // count takes microseconds
	case in != nil && x.count(in) <= max(few, x.vectors/sparse):
		s.compareAll()
	case lengths != nil || in != nil && x.tails == nil:
		for c := range x.cells {
			s.scan(int32(c))
		}
	case in == nil:
		for i, c := range x.order(unit) {
			if i >= x.probes && s.best.full() {
				break
			}
			s.scan(c.cell)
		}
	default:
		s.scanLikely(x.order(unit))
	}
	return s.done()
}

// search is a query on its way through the index.
type search struct {
	*Index
	query   []int16
	scale   float32
	in      []uint64
	lengths func(handle int32) float32
	best    top         // scores by the codes
	near    []candidate // all that may be among the best
	trimAt  int         // candidates
}

// candidate is a row, and the most that its score can be.
type candidate struct {
	block *block
	row   int
	score float32 // by the codes
	most  float32
}

func (x *Index) newSearch(unit []float32, k int, in []uint64) *search {
	s := &search{Index: x, query: make([]int16, x.width), in: in, best: top{k: min(k, x.vectors)}, trimAt: 1024}
	s.scale = round(s.query, unit)
	return s
}

// done compares the query with all that is stored of the candidates, and returns the best.
func (s *search) done() []Neighbour {
	s.trim()
	found := make([]Neighbour, len(s.near))
	for i, c := range s.near {
		rest := fineProduct(s.query, c.block.fineRow(c.row, s.width))
		// These conversions, too, keep processors from rounding once where others round twice.
		more := float32(float32(rest) * (c.block.scales[c.row] * s.scale / 16))
		h := c.block.handles[c.row]
		if s.lengths != nil {
			more = float32(more * s.lengths(h))
		}
		found[i] = Neighbour{s.ids[h], c.score + more}
	}
	slices.SortFunc(found, better)
	return found[:min(s.best.k, len(found))]
}

// scanLikely looks into cells in order, until it is not likely that those left have an answer that is not found. It
// returns how many it has looked into.
func (s *search) scanLikely(order []ordered) (cells int) {
	left, rest := s.vectors, s.vectors // vectors in the cells that are left, and those that may be an answer
	if s.in != nil {
		rest = s.count(s.in)
	}
	// Those that may be an answer can lie together, so their share is at least what it was in the last cells.
	var latest float32
	for i, c := range order {
		if share := max(float32(rest)/float32(left), latest); rest == 0 || s.best.full() &&
			!s.exceeds(Missed*float32(s.best.k), order[i:], i, s.best.least(), share) {
			return i
		}
		if all := int(s.cells[c.cell].n); all > 0 {
			may := s.scan(c.cell)
			latest = float32(latest*3/4) + float32(may)/float32(4*all)
			rest, left = rest-may, left-all
		}
	}
	return len(order)
}

// scan looks into a cell, and returns how many of its vectors may be an answer.
func (s *search) scan(c int32) (may int) {
	left := int(s.cells[c].n)
	for _, b := range s.cells[c].blocks {
		rows := min(left, blockRows)
		left -= rows
		in := s.among(b, rows)
		may += bits.OnesCount32(in)
		s.compare(b, rows, in)
	}
	return may
}

// among says by bit which rows of a block may be an answer.
func (s *search) among(b *block, rows int) (in uint32) {
	if s.in == nil {
		return 1<<rows - 1
	}
	for r, h := range b.handles[:rows] {
		if isIn(s.in, h) {
			in |= 1 << r
		}
	}
	return in
}

// compare compares the query with the rows of a block that are in a set. If they are many, it calculates the products
// of all, which takes less time a row, and offers these alone.
func (s *search) compare(b *block, rows int, in uint32) {
	const many = 8
	if bits.OnesCount32(in) < many {
		for ; in != 0; in &= in - 1 {
			s.compareRow(b, bits.TrailingZeros32(in))
		}
		return
	}
	var sums [blockRows]int32
	products(sums[:rows], s.query, b.codes)
	for ; in != 0; in &= in - 1 {
		r := bits.TrailingZeros32(in)
		s.offer(b, r, sums[r])
	}
}

func (s *search) compareRow(b *block, r int) {
	var sum [1]int32
	products(sum[:], s.query, b.row(r, s.width))
	s.offer(b, r, sum[0])
}

// compareAll compares the query with every vector that may be an answer.
func (s *search) compareAll() {
	for w, word := range s.in[:min(len(s.in), len(s.has))] {
		for word &= s.has[w]; word != 0; word &= word - 1 {
			at := s.where[w*64+bits.TrailingZeros64(word)]
			s.compareRow(s.cells[at.cell].locate(at.n))
		}
	}
}

// offer makes a row a candidate if it may be among the best so far: what its codes leave is nearly always worth less
// than a step of them, 3.5 standard deviations.
func (s *search) offer(b *block, r int, sum int32) {
	score, step := float32(float32(sum)*(b.scales[r]*s.scale)), b.scales[r]
	if s.lengths != nil {
		length := s.lengths(b.handles[r])
		score, step = float32(score*length), float32(step*length)
	}
	most := score + step
	if s.best.full() && most < s.best.least() {
		return
	}
	s.best.add(score)
	s.near = append(s.near, candidate{b, r, score, most})
	if len(s.near) == s.trimAt {
		s.trim()
		s.trimAt = max(s.trimAt, 2*len(s.near))
	}
}

// trim drops the candidates that better ones have ruled out.
func (s *search) trim() {
	if s.best.full() {
		s.near = slices.DeleteFunc(s.near, func(c candidate) bool { return c.most < s.best.least() })
	}
}

// count returns how many vectors may be an answer.
func (x *Index) count(in []uint64) (n int) {
	for w, word := range in[:min(len(in), len(x.has))] {
		n += bits.OnesCount64(word & x.has[w])
	}
	return n
}

// isIn says whether a handle is in a set of handles.
func isIn(set []uint64, h int32) bool { return int(h/64) < len(set) && set[h/64]>>(h%64)&1 != 0 }

// better orders neighbours: the better first.
func better(a, b Neighbour) int {
	return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.ID, b.ID))
}

// top keeps the k best scores, the worst of them first (a heap).
type top struct {
	k    int
	heap []float32
}

func (t *top) full() bool { return len(t.heap) == t.k }

// least is the worst of the k.
func (t *top) least() float32 { return t.heap[0] }

func (t *top) add(score float32) {
	switch {
	case !t.full():
		t.heap = append(t.heap, score)
		for i := len(t.heap) - 1; i > 0; {
			parent := (i - 1) / 2
			if t.heap[i] >= t.heap[parent] {
				break
			}
			t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
			i = parent
		}
	case score > t.heap[0]:
		t.heap[0] = score
		for i := 0; ; {
			worst := i
			for child := 2*i + 1; child <= 2*i+2 && child < t.k; child++ {
				if t.heap[child] < t.heap[worst] {
					worst = child
				}
			}
			if worst == i {
				break
			}
			t.heap[i], t.heap[worst] = t.heap[worst], t.heap[i]
			i = worst
		}
	}
}
