package quant

import (
	"fmt"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// tall is the most rows of x that meet a panel before the next one is used: with them, the rows stay in
// the second-level cache.
const tall = 224

// kernels is one instruction set's share of the work.
type kernels struct {
	name   string
	group  int // numbers of x in a word
	height int // rows of a tile
	width  int // columns of a tile

	// extremes is plainExtremes.
	extremes func(x, f []float32) (low, high float32, top uint32)
	// round packs the step of each number of x·f into words. VNNI's are
	// q instead of q − z, which the tile makes up for.
	round func(words []uint32, x, f []float32, inverse float32, zero int32)
	// residues is plainResidues.
	residues func(out, x, f []float32, inverse float32, zero int32)
	// tile sets height × width numbers of y, ldy apart, from the rows at a and the panel at b, of groups
	// words a row and a column. a's rows are stride words apart.
	tile func(t *tile)
}

// tile is what a kernel needs to know. The fields are pointers, for the assembly.
type tile struct {
	groups int
	a      *uint32
	stride uintptr // of a's rows, in bytes
	b      *uint32
	scales *float32 // of the rows
	zeros  *int32   // of the rows
	sums   *int32   // of the columns
	column *float32 // scales of the columns
	base   *float32 // what is added: the bias, or y as it is
	step   uintptr  // of base's rows, in bytes; 0 for a bias
	y      *float32
	ldy    uintptr // in bytes
}

// work is the memory of a product.
type work struct {
	rows rows
	bias []float32 // of whole panels
	edge []float32 // a tile that extends beyond y
	loud []float32 // the loud columns of x
	tile tile
}

var pool = sync.Pool{New: func() any { return new(work) }}

// Multiply sets y (n × out) to x·m + bias, where x is n × in. It runs on the goroutine that calls it.
func (m *Matrix) Multiply(y, x []float32, n int, bias []float32) {
	if len(x) < n*m.in || len(y) < n*m.out || len(bias) < m.out {
		panic(fmt.Sprintf("quant: %d rows of %d numbers in %d, of %d in %d, and a bias of %d", n, m.in, len(x),
			m.out, len(y), len(bias))) // a mistake of the program
	}
	w := pool.Get().(*work)
	defer pool.Put(w)
	w.bias = resize(w.bias, roundUp(m.out, m.width))
	clear(w.bias[copy(w.bias, bias[:m.out]):])
	w.edge = resize(w.edge, m.height*m.width)
	for i := 0; i < n; i += tall {
		rows := min(tall, n-i)
		m.quantize(&w.rows, x[i*m.in:], rows)
		m.block(w, y[i*m.out:], rows)
		m.addLoud(w, y[i*m.out:], x[i*m.in:], rows)
	}
}

// addLoud adds the products of the loud columns of x.
func (m *Matrix) addLoud(w *work, y, x []float32, n int) {
	k := len(m.loud)
	if k == 0 {
		return
	}
	w.loud = resize(w.loud, n*k)
	for i := range n {
		row, loud := x[i*m.in:(i+1)*m.in], w.loud[i*k:(i+1)*k]
		for l, at := range m.loud {
			loud[l] = row[at]
		}
	}
	blas32.Implementation().Sgemm(blas.NoTrans, blas.NoTrans, n, m.out, k, 1, w.loud, k, m.rest, m.out, 1, y, m.out)
}

// block multiplies the rows in w, n of them.
func (m *Matrix) block(w *work, y []float32, n int) {
	for j := 0; j < m.out; j += m.width {
		columns := min(m.width, m.out-j)
		for i := 0; i < n; i += m.height {
			rows := min(m.height, n-i)
			if rows == m.height && columns == m.width {
				m.tiles(w, i, j, y[i*m.out+j:], m.out)
				continue
			}
			m.tiles(w, i, j, w.edge, m.width)
			for r := range rows {
				copy(y[(i+r)*m.out+j:][:columns], w.edge[r*m.width:])
			}
		}
	}
	w.tile = tile{} // the pool is not to keep y and m
}

// tiles multiplies the rows from i on by the columns from j on: q by w, q by v, and of a fine matrix p by w.
func (m *Matrix) tiles(w *work, i, j int, y []float32, ldy int) {
	r := &w.rows
	w.tile = tile{
		groups: m.groups, stride: uintptr(r.stride) * 4, base: &w.bias[j], y: &y[0], ldy: uintptr(ldy) * 4,
	}
	add := func(x *rowsPart, part *part) {
		w.tile.a, w.tile.scales, w.tile.zeros = &x.words[i*r.stride], &x.scales[i], &x.zeros[i]
		w.tile.b, w.tile.sums, w.tile.column = &part.panels[j*m.groups], &part.sums[j], &part.scales[j]
		m.tile(&w.tile)
		w.tile.base, w.tile.step = w.tile.y, w.tile.ldy
	}
	add(&r.parts[0], &m.parts[0])
	add(&r.parts[0], &m.parts[1])
	if m.fine {
		add(&r.parts[1], &m.parts[0])
	}
}
