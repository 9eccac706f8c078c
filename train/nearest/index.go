package nearest

import (
	"fmt"
	"slices"

	"giantstream/train/numeric"
)

// blockRows is how many vectors a cell takes memory for at a time.
const blockRows = 32

// Index holds vectors of one dimension by id, and knows ids without a vector. Each id has a handle, a small number,
// for as long as it is known. Searches may run beside each other; changes exclude them, and the caller sees to it.
type Index struct {
	dim, width int // width: dim, padded

	cells   []cell
	centers []int8    // of the cells, each of width codes; none if there is one cell
	scales  []float32 // of the centres
	probes  int       // cells that a query of all vectors looks into
	tails   *tails    // nil: queries of some vectors look into all cells

	ids     []string // by handle
	where   []place  // by handle
	has     []uint64 // bit h of word h/64: handle h has a vector
	vectors int
	handle  map[string]int32
	unused  []int32 // handles
}

// place is where a vector is: the n-th of a cell.
type place struct{ cell, n int32 }

type cell struct {
	blocks []*block
	n      int32
}

type block struct {
	handles [blockRows]int32
	scales  [blockRows]float32
	codes   []int8 // blockRows × width
	fine    []byte // blockRows × width / 2
}

// New returns an index that is searched as a whole.
func New(dim int) *Index {
	return &Index{dim: dim, width: padded(dim), cells: make([]cell, 1), probes: 1, handle: map[string]int32{}}
}

// Dim is the number of dimensions.
func (x *Index) Dim() int { return x.dim }

// Len is the number of vectors.
func (x *Index) Len() int { return x.vectors }

// Handles is above all handles.
func (x *Index) Handles() int { return len(x.ids) }

// Handle returns the handle of an id, and whether the id is known.
func (x *Index) Handle(id string) (int32, bool) {
	h, ok := x.handle[id]
	return h, ok
}

// Cells returns how many cells there are, and how many of them a query of all vectors looks into.
func (x *Index) Cells() (all, probed int) { return len(x.cells), x.probes }

// Change is vectors on their way into an index.
type Change struct {
	ids   []string
	unit  []float32
	cells []int32
}

// Prepare does for Apply what needs time. It may run beside searches and changes. vectors is len(ids) × dim; its rows
// need no particular length. The change keeps ids, not vectors.
func (x *Index) Prepare(ids []string, vectors []float32) (*Change, error) {
	if len(vectors) != len(ids)*x.dim {
		return nil, fmt.Errorf("%d numbers are not %d vectors of %d dimensions", len(vectors), len(ids), x.dim)
	}
	unit := slices.Clone(vectors)
	for i := range ids {
		numeric.Normalize(unit[i*x.dim : (i+1)*x.dim])
	}
	return &Change{ids, unit, x.assign(unit)}, nil
}

// Apply adds vectors, or replaces those with the same id. One of length 0 has no cosine: its id is known without a
// vector.
func (x *Index) Apply(c *Change) {
	for i, id := range c.ids {
		h, known := x.handle[id]
		if known {
			x.drop(h)
		} else {
			h = x.intern(id)
		}
		if v := c.unit[i*x.dim : (i+1)*x.dim]; largest(v) > 0 {
			x.add(h, c.cells[i], v)
		}
	}
}

// Set prepares and applies a change.
func (x *Index) Set(ids []string, vectors []float32) error {
	c, err := x.Prepare(ids, vectors)
	if err == nil {
		x.Apply(c)
	}
	return err
}

// Remove forgets an id, if it is known, and its vector. Another id may get its handle.
func (x *Index) Remove(id string) {
	h, known := x.handle[id]
	if !known {
		return
	}
	x.drop(h)
	delete(x.handle, id)
	x.ids[h] = ""
	x.unused = append(x.unused, h)
}

func (x *Index) intern(id string) int32 {
	h := int32(len(x.ids))
	if n := len(x.unused); n > 0 {
		h, x.unused = x.unused[n-1], x.unused[:n-1]
		x.ids[h] = id
	} else {
		x.ids, x.where = append(x.ids, id), append(x.where, place{})
		if int(h/64) == len(x.has) {
			x.has = append(x.has, 0)
		}
	}
	x.handle[id] = h
	return h
}

func (x *Index) add(h, c int32, v []float32) {
	in := &x.cells[c]
	if int(in.n) == len(in.blocks)*blockRows {
		size := blockRows * x.width
		in.blocks = append(in.blocks, &block{codes: make([]int8, size), fine: make([]byte, size/2)})
	}
	b, row := in.locate(in.n)
	b.handles[row] = h
	b.scales[row] = encode(b.row(row, x.width), b.fineRow(row, x.width), v)
	x.where[h] = place{c, in.n}
	in.n++
	x.has[h/64] |= 1 << (h % 64)
	x.vectors++
}

// drop takes the vector of a handle, if there is one, and puts the last one of the cell in its place.
func (x *Index) drop(h int32) {
	if !isIn(x.has, h) {
		return
	}
	at := x.where[h]
	in := &x.cells[at.cell]
	in.n--
	to, i := in.locate(at.n)
	from, j := in.locate(in.n)
	to.handles[i], to.scales[i] = from.handles[j], from.scales[j]
	copy(to.row(i, x.width), from.row(j, x.width))
	copy(to.fineRow(i, x.width), from.fineRow(j, x.width))
	x.where[to.handles[i]] = at
	if int(in.n) == (len(in.blocks)-1)*blockRows {
		in.blocks[len(in.blocks)-1] = nil
		in.blocks = in.blocks[:len(in.blocks)-1]
	}
	x.has[h/64] &^= 1 << (h % 64)
	x.vectors--
}

// locate returns the block of entry n, and its row there.
func (c *cell) locate(n int32) (b *block, row int) { return c.blocks[n/blockRows], int(n % blockRows) }

// row is the codes of a row.
func (b *block) row(r, width int) []int8 { return b.codes[r*width : (r+1)*width] }

// fineRow is what the codes of a row leave.
func (b *block) fineRow(r, width int) []byte { return b.fine[r*width/2 : (r+1)*width/2] }

// Vector writes the vector of an id, as it is stored, to v, and reports whether there is one.
func (x *Index) Vector(id string, v []float32) bool {
	h, known := x.handle[id]
	if !known || !isIn(x.has, h) {
		return false
	}
	x.vector(h, v)
	return true
}

// vector writes that of a handle that has one.
func (x *Index) vector(h int32, v []float32) {
	at := x.where[h]
	b, row := x.cells[at.cell].locate(at.n)
	fine := b.fineRow(row, x.width)
	for i, c := range b.row(row, x.width)[:x.dim] {
		v[i] = (float32(c) + float32(fineAt(fine, i))/16) * b.scales[row]
	}
}
