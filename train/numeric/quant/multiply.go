package quant

import (
	"fmt"
	"sync"
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

	// split is plainSplit. It may write behind numbers more to quiet and loud.
	split func(quiet, loud, x []float32, mask []uint16)
	// extremes is plainExtremes.
	extremes func(x, f []float32) (low, high float32, top uint32)
	// round packs q − z of x·f into words. VNNI's are q, which the tile makes up for.
	round func(words []uint32, x, f []float32, inverse float32, zero int32)
	// roundLoud packs p of x·f into words, two to a word.
	roundLoud func(words []uint32, x, f []float32, inverse float32)
	// tile sets height × width numbers of y, ldy apart, from the rows at a and the panel at b, of loud
	// and then groups words a row and a column. a's rows are stride words apart.
	tile func(t *tile)
}

// tile is what a kernel needs to know. The fields are pointers, for the assembly.
type tile struct {
	loud   int    // words of the loud part
	half   int32  // ½·4^b, added to the sum of the loud part
	shift  uint64 // 2·b: the bits by which that sum is shifted
	groups int
	a      *uint32
	stride uintptr // of a's rows, in bytes
	b      *uint32
	scales *float32 // of the rows
	zeros  *int32   // of the rows
	sums   *int32   // of the columns
	column *float32 // scales of the columns
	bias   *float32
	y      *float32
	ldy    uintptr // in bytes
}

// work is the memory of a product.
type work struct {
	rows rows
	bias []float32 // of whole panels
	edge []float32 // a tile that extends beyond y
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
	for j, d := range m.drift {
		w.bias[j] = bias[j] + d
	}
	clear(w.bias[m.out:])
	w.edge = resize(w.edge, m.height*m.width)
	for i := 0; i < n; i += tall {
		rows := min(tall, n-i)
		m.quantize(&w.rows, x[i*m.in:], rows)
		m.block(w, y[i*m.out:], rows)
	}
}

// block multiplies the rows in w, n of them.
func (m *Matrix) block(w *work, y []float32, n int) {
	r, t := &w.rows, &w.tile
	*t = tile{loud: m.groups[0], half: 1 << (2*m.bits - 1), shift: uint64(2 * m.bits), groups: m.groups[1],
		stride: uintptr(r.stride) * 4}
	for j := 0; j < m.out; j += m.width {
		columns := min(m.width, m.out-j)
		t.b, t.sums = &m.panels[j*(m.groups[0]+m.groups[1])], &m.sums[j]
		t.column, t.bias = &m.scales[j], &w.bias[j]
		for i := 0; i < n; i += m.height {
			rows := min(m.height, n-i)
			whole := rows == m.height && columns == m.width
			t.a, t.scales, t.zeros = &r.words[i*r.stride], &r.scales[i], &r.zeros[i]
			t.y, t.ldy = &w.edge[0], uintptr(m.width)*4
			if whole {
				t.y, t.ldy = &y[i*m.out+j], uintptr(m.out)*4
			}
			m.tile(t)
			if !whole {
				for r := range rows {
					copy(y[(i+r)*m.out+j:][:columns], w.edge[r*m.width:])
				}
			}
		}
	}
	*t = tile{} // the pool is not to keep y and m
}
