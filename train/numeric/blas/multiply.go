package blas

const (
	// depth is how much of k a tile sums before it is added to C: 384 rows of a panel and 14 of A
	// stay in the first two caches. The value changes the bits of results.
	depth = 384
	// wide is how many columns of B are packed at a time: 2.25 MiB, shared
	// by all rows of A.
	wide = 1536
	// tall is the most rows of A that are multiplied by a panel before the next panel is used: 252
	// KiB, half of a small second-level cache.
	tall = 168
	// few is the largest number of rows of A for which B is read in place instead of packed.
	few = 28

	size = 4 // bytes of a float32
)

// buffers are what one product at a time needs, kept between products.
type buffers struct {
	a, b, c []float32
}

// multiply computes p on this goroutine; p.beta is 0 or 1.
func (im Implementation) multiply(p product) {
	buf := im.buffers.Get().(*buffers)
	defer im.buffers.Put(buf)
	blocks := ceil(p.m, tall)
	rows := min(p.m, roundUp(ceil(p.m, blocks), im.tiles[0].rows))
	for j := 0; j < p.n; j += wide {
		n := min(wide, p.n-j)
		for l := 0; l < p.k; l += depth {
			k := min(depth, p.k-l)
			b := im.packB(buf, &p, l, k, j, n)
			for i := 0; i < p.m; i += rows {
				m := min(rows, p.m-i)
				a := im.blockA(buf, &p, i, m, l, k)
				c := p.c[i*p.ldc+j:]
				for jj := 0; jj < n; jj += im.width {
					im.panel(buf, &p, a, m, k, b.panelFrom(jj), c[jj:], min(im.width, n-jj), p.beta != 0 || l > 0)
				}
			}
		}
	}
}

// operand is a block of A: element (i, l) is data[i·row + l·col].
type operand struct {
	data     []float32
	row, col int
}

// panel multiplies m×k of A by k×width of B into width columns of C.
func (im Implementation) panel(buf *buffers, p *product, a operand, m, k int, b rows, c []float32, width int,
	add bool) {
	i := 0
	for _, t := range im.tiles {
		for ; m-i >= t.rows; i += t.rows {
			at, to := &a.data[i*a.row], c[i*p.ldc:]
			if width < im.width {
				im.edge(buf, t, at, a, k, b, to, p.ldc, width, p.alpha, add)
				continue
			}
			t.run(k, at, uintptr(a.row)*size, uintptr(a.col)*size, &b.data[0], uintptr(b.stride)*size,
				p.alpha, &to[0], uintptr(p.ldc)*size, add)
		}
	}
}

// edge computes a tile that extends beyond the last column of C: it computes a whole tile aside and
// copies the columns that are in C.
func (im Implementation) edge(buf *buffers, t tile, at *float32, a operand, k int, b rows, c []float32, ldc,
	width int, alpha float32, add bool) {
	buf.c = grow(buf.c, t.rows*im.width)
	if add {
		for i := range t.rows {
			copy(buf.c[i*im.width:], c[i*ldc:][:width])
		}
	}
	t.run(k, at, uintptr(a.row)*size, uintptr(a.col)*size, &b.data[0], uintptr(b.stride)*size,
		alpha, &buf.c[0], uintptr(im.width)*size, add)
	for i := range t.rows {
		copy(c[i*ldc:][:width], buf.c[i*im.width:])
	}
}

func grow(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n)
	}
	return x[:n]
}
