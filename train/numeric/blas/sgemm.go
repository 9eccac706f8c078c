package blas

import (
	"gonum.org/v1/gonum/blas"
)

// product is C = alpha·op(A)·op(B) + beta·C, of m×k by k×n.
type product struct {
	transA, transB bool
	m, n, k        int
	alpha          float32
	a              []float32
	lda            int
	b              []float32
	ldb            int
	beta           float32
	c              []float32
	ldc            int
}

// Sgemm computes C = alpha·op(A)·op(B) + beta·C, where op(A) is m×k and op(B) is k×n. C is not read
// if beta is 0, nor A and B if alpha is 0. It panics on the same arguments as gonum's Sgemm, with
// the same messages.
func (im Implementation) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int,
	b []float32, ldb int, beta float32, c []float32, ldc int) {
	p := product{
		transA: tA != blas.NoTrans, transB: tB != blas.NoTrans,
		m: m, n: n, k: k, alpha: alpha, a: a, lda: lda, b: b, ldb: ldb, beta: beta, c: c, ldc: ldc,
	}
	if im.kernels == nil || !known(tA) || !known(tB) || !p.fits() {
		im.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	if k == 0 || alpha == 0 {
		p.scale()
		return
	}
	if beta != 0 && beta != 1 {
		p.scale()
		p.beta = 1
	}
	im.share(p)
}

func known(t blas.Transpose) bool {
	return t == blas.NoTrans || t == blas.Trans || t == blas.ConjTrans
}

// fits reports whether the matrices lie within their slices and C is not empty. If not, the call
// goes to gonum, which panics or has nothing to do.
func (p *product) fits() bool {
	if p.m <= 0 || p.n <= 0 || p.k < 0 {
		return false
	}
	rowsA, colsA, rowsB, colsB := p.m, p.k, p.k, p.n
	if p.transA {
		rowsA, colsA = colsA, rowsA
	}
	if p.transB {
		rowsB, colsB = colsB, rowsB
	}
	within := func(x []float32, rows, cols, ld int) bool {
		return ld >= max(1, cols) && len(x) >= (rows-1)*ld+cols
	}
	return within(p.a, rowsA, colsA, p.lda) && within(p.b, rowsB, colsB, p.ldb) && within(p.c, p.m, p.n, p.ldc)
}

// scale sets C to beta·C.
func (p *product) scale() {
	for i := range p.m {
		row := p.c[i*p.ldc:][:p.n]
		switch p.beta {
		case 0:
			clear(row)
		case 1:
			return
		default:
			for j := range row {
				row[j] *= p.beta
			}
		}
	}
}

// part is the product for rows [i, i+m) and columns [j, j+n) of C.
func (p product) part(i, m, j, n int) product {
	if p.transA {
		p.a = p.a[i:]
	} else {
		p.a = p.a[i*p.lda:]
	}
	if p.transB {
		p.b = p.b[j*p.ldb:]
	} else {
		p.b = p.b[j:]
	}
	p.c = p.c[i*p.ldc+j:]
	p.m, p.n = m, n
	return p
}
