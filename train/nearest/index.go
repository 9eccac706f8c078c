package nearest

import (
	"fmt"
	"sync"

	"giantstream/train/numeric"
)

// blockRows is how many vectors a cell takes memory for at a time.
const blockRows = 32

// Index holds vectors of one dimension by id. It is safe for concurrent use: searches run beside each other, and
// changes exclude them for as long as a vector takes.
type Index struct {
	dim, width int // width: dim, padded

	mu      sync.RWMutex
	cells   []cell
	centers []int8    // of the cells, each of width codes; none if there is one cell
	scales  []float32 // of the centres
	probes  int
	ids     []string // by handle
	where   []place  // by handle
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
}

// New returns an index that is searched as a whole.
func New(dim int) *Index {
	return &Index{dim: dim, width: padded(dim), cells: make([]cell, 1), probes: 1, handle: map[string]int32{}}
}

// Dim is the number of dimensions.
func (x *Index) Dim() int { return x.dim }

// Len is the number of vectors.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.handle)
}

// Cells returns how many cells there are, and how many of them a query looks into.
func (x *Index) Cells() (all, probed int) { return len(x.cells), x.probes }

// Set adds vectors, or replaces those with the same id. vectors is len(ids) × dim; its rows need no particular
// length, but one of length 0 has no cosine and is removed. The index keeps neither slice.
func (x *Index) Set(ids []string, vectors []float32) error {
	if len(vectors) != len(ids)*x.dim {
		return fmt.Errorf("%d numbers are not %d vectors of %d dimensions", len(vectors), len(ids), x.dim)
	}
	unit := make([]float32, len(vectors))
	copy(unit, vectors)
	for i := range ids {
		numeric.Normalize(unit[i*x.dim : (i+1)*x.dim])
	}
	cells := x.assign(unit)
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, id := range ids {
		x.remove(id)
		if v := unit[i*x.dim : (i+1)*x.dim]; largest(v) > 0 {
			x.add(id, cells[i], v)
		}
	}
	return nil
}

// Remove removes a vector, if there is one of this id.
func (x *Index) Remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(id)
}

func (x *Index) add(id string, c int32, v []float32) {
	h := int32(len(x.ids))
	if n := len(x.unused); n > 0 {
		h, x.unused = x.unused[n-1], x.unused[:n-1]
		x.ids[h] = id
	} else {
		x.ids, x.where = append(x.ids, id), append(x.where, place{})
	}
	x.handle[id] = h
	in := &x.cells[c]
	if int(in.n) == len(in.blocks)*blockRows {
		in.blocks = append(in.blocks, &block{codes: make([]int8, blockRows*x.width)})
	}
	b, row := in.locate(in.n)
	b.handles[row] = h
	b.scales[row] = encode(b.codes[row*x.width:(row+1)*x.width], v)
	x.where[h] = place{c, in.n}
	in.n++
}

// remove puts the last vector of the cell in the place of the one that goes.
func (x *Index) remove(id string) {
	h, ok := x.handle[id]
	if !ok {
		return
	}
	at := x.where[h]
	in := &x.cells[at.cell]
	in.n--
	to, i := in.locate(at.n)
	from, j := in.locate(in.n)
	to.handles[i], to.scales[i] = from.handles[j], from.scales[j]
	copy(to.codes[i*x.width:(i+1)*x.width], from.codes[j*x.width:(j+1)*x.width])
	x.where[to.handles[i]] = at
	if int(in.n) == (len(in.blocks)-1)*blockRows {
		in.blocks[len(in.blocks)-1] = nil
		in.blocks = in.blocks[:len(in.blocks)-1]
	}
	delete(x.handle, id)
	x.ids[h] = ""
	x.unused = append(x.unused, h)
}

// locate returns the block of entry n, and its row there.
func (c *cell) locate(n int32) (b *block, row int) { return c.blocks[n/blockRows], int(n % blockRows) }

// Vector writes the vector of an id, as it is stored, to v, and reports whether there is one.
func (x *Index) Vector(id string, v []float32) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	h, ok := x.handle[id]
	if !ok {
		return false
	}
	at := x.where[h]
	b, row := x.cells[at.cell].locate(at.n)
	for i, c := range b.codes[row*x.width : row*x.width+x.dim] {
		v[i] = float32(c) * b.scales[row]
	}
	return true
}
