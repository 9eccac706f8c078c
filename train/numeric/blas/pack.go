package blas

// rows are rows of numbers, stride apart.
type rows struct {
	data   []float32
	stride int
}

// panels is k×n of B, cut into panels of columns as wide as a tile.
type panels struct {
	data   []float32
	width  int
	depth  int // rows of a packed panel
	direct []float32
	ldb    int
	until  int // columns that are read where they lie
}

// panelFrom returns the panel that begins with column j.
func (b *panels) panelFrom(j int) rows {
	if j < b.until {
		return rows{b.direct[j:], b.ldb}
	}
	return rows{b.data[(j-b.until)*b.depth:], b.width}
}

// packB gives rows [l, l+k) and columns [j, j+n) of B as panels; columns
// beyond the last are 0.
func (im Implementation) packB(buf *buffers, p *product, l, k, j, n int) panels {
	w := im.width
	b := panels{width: w, depth: k}
	if !p.transB && p.m <= few {
		b.direct, b.ldb, b.until = p.b[l*p.ldb+j:], p.ldb, n/w*w
	}
	buf.b = grow(buf.b, roundUp(n-b.until, w)*k)
	b.data = buf.b
	for at := b.until; at < n; at += w {
		dst, cols := b.data[(at-b.until)*k:][:k*w], min(w, n-at)
		if cols < w {
			clear(dst)
		}
		if p.transB {
			im.transpose(dst, w, p.b[(j+at)*p.ldb+l:], p.ldb, cols, k)
		} else {
			copyRows(dst, w, p.b[l*p.ldb+j+at:], p.ldb, k, cols)
		}
	}
	return b
}

// transpose writes src, n rows of k, as k rows of n, w apart.
func (im Implementation) transpose(dst []float32, w int, src []float32, ld, n, k int) {
	n8, k8 := n&^7, k&^7
	if k8 > 0 {
		for i := 0; i < n8; i += 8 {
			im.transpose8(&dst[i], uintptr(w)*size, &src[i*ld], uintptr(ld)*size, k8/8)
		}
	}
	for i := range n {
		from := 0
		if i < n8 {
			from = k8
		}
		row := src[i*ld:][:k]
		for l := from; l < k; l++ {
			dst[l*w+i] = row[l]
		}
	}
}

// copyRows copies n rows of w numbers.
func copyRows(dst []float32, dstStride int, src []float32, srcStride, n, w int) {
	if w == 32 {
		for i := range n {
			*(*[32]float32)(dst[i*dstStride:]) = *(*[32]float32)(src[i*srcStride:])
		}
		return
	}
	for i := range n {
		copy(dst[i*dstStride:][:w], src[i*srcStride:])
	}
}

// blockA gives rows [i, i+m) and columns [l, l+k) of op(A). It is copied, rows
// beside each other, if A is stored transposed and is read more than twice, or if its
// rows lie a multiple of 2 KiB apart and so would meet in few sets of the cache.
func (im Implementation) blockA(buf *buffers, p *product, i, m, l, k int) operand {
	const stride = depth + 16 // not such a multiple
	switch {
	case p.transA && (m <= 4 || p.n <= 2*im.width):
		return operand{p.a[l*p.lda+i:], 1, p.lda}
	case p.transA:
		buf.a = grow(buf.a, m*stride)
		im.transpose(buf.a, stride, p.a[l*p.lda+i:], p.lda, k, m)
	case m > 4 && p.lda*size%2048 == 0:
		buf.a = grow(buf.a, m*stride)
		copyRows(buf.a, stride, p.a[i*p.lda+l:], p.lda, m, k)
	default:
		return operand{p.a[i*p.lda+l:], p.lda, 1}
	}
	return operand{buf.a, stride, 1}
}
