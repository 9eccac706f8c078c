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
	// few vectors are all compared, if they are all that may be an answer; else at least as many are seen.
	few = 15_000
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
// If few may be an answer, or at most twice as many as a query without in sees, all of them are compared. Else the
// cells are looked into, the best first, until as many that may be an answer were seen.
func (x *Index) Search(query []float32, k int, in []uint64, lengths func(handle int32) float32) []Neighbour {
	unit := slices.Clone(query)
	if k <= 0 || len(query) != x.dim || numeric.Normalize(unit) == 0 {
		return nil
	}
	s := x.newSearch(unit, k, in)
	s.lengths = lengths
	switch { // count takes microseconds
	case in != nil && x.count(in) < x.vectors/sparse:
		s.compareAll()
	case lengths != nil, in != nil && x.count(in) <= max(2*x.seen, few):
		all := make([]int32, len(x.cells))
		for c := range all {
			all[c] = int32(c)
		}
		s.scan(all, len(all), 0)
	case in == nil:
		s.scan(x.best(unit), x.probes, k)
	default:
		s.scan(x.best(unit), 0, max(2*x.seen, few, k))
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
	found   top
}

func (x *Index) newSearch(unit []float32, k int, in []uint64) *search {
	s := &search{Index: x, query: make([]int16, x.width), in: in, found: top{k: min(k, x.vectors)}}
	s.scale = round(s.query, unit)
	return s
}

func (s *search) done() []Neighbour {
	slices.SortFunc(s.found.heap, compare)
	return s.found.heap
}

// scan looks into cells in order: into a number of them, and on until a number of vectors were seen.
func (s *search) scan(cells []int32, probes, vectors int) {
	seen := 0
	for i, c := range cells {
		if i >= probes && seen >= vectors {
			return
		}
		left := int(s.cells[c].n)
		for _, b := range s.cells[c].blocks {
			rows := min(left, blockRows)
			left -= rows
			if s.in == nil {
				seen += rows
				s.compareBlock(b, rows)
				continue
			}
			for r, h := range b.handles[:rows] {
				if isIn(s.in, h) {
					seen++
					s.compareRow(b, r)
				}
			}
		}
	}
}

func (s *search) compareBlock(b *block, rows int) {
	var sums [blockRows]int32
	products(sums[:rows], s.query, b.codes)
	for r, sum := range sums[:rows] {
		s.offer(b, r, sum)
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

// offer makes a row an answer if it is among the best so far.
func (s *search) offer(b *block, r int, sum int32) {
	score := float32(sum) * (b.scales[r] * s.scale)
	if s.lengths != nil {
		score *= s.lengths(b.handles[r])
	}
	if !s.found.full() || score >= s.found.heap[0].Cosine {
		s.found.add(Neighbour{s.ids[b.handles[r]], score})
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

// compare orders neighbours: the better first.
func compare(a, b Neighbour) int {
	return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.ID, b.ID))
}

// top keeps the k best neighbours, the worst of them first (a heap).
type top struct {
	k    int
	heap []Neighbour
}

func (t *top) full() bool { return len(t.heap) == t.k }

func (t *top) add(n Neighbour) {
	switch {
	case !t.full():
		t.heap = append(t.heap, n)
		for i := len(t.heap) - 1; i > 0; {
			parent := (i - 1) / 2
			if compare(t.heap[i], t.heap[parent]) <= 0 {
				break
			}
			t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
			i = parent
		}
	case compare(n, t.heap[0]) < 0:
		t.heap[0] = n
		for i := 0; ; {
			worst := i
			for child := 2*i + 1; child <= 2*i+2 && child < t.k; child++ {
				if compare(t.heap[child], t.heap[worst]) > 0 {
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
