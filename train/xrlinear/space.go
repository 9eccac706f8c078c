package xrlinear

import (
	"slices"

	"gonum.org/v1/gonum/blas/blas32"
)

// space is where the descent happens: it knows Σ_i s_i x_i, s_i = y_i α_i,
// in one form or another.
type space interface {
	// margin is ⟨w, x_k⟩ + b, without what columns of row k alone add.
	margin(k int32) float32
	// add moves s_k by d.
	add(k int32, d float32)
}

// primal keeps w itself.
type primal struct {
	l *local
	w []float32
	b float32
}

func newPrimal(l *local) *primal { return &primal{l: l, w: make([]float32, len(l.cols))} }

func (p *primal) margin(k int32) float32 { return p.l.dot(k, p.w) + p.b }

func (p *primal) add(k int32, d float32) {
	p.l.axpy(k, d, p.w)
	p.b += d
}

func (p *primal) become(q *primal) {
	p.l, p.b = q.l, q.b
	p.w = append(p.w[:0], q.w...)
}

// dual keeps all margins, and moves them along rows of the Gram matrix.
type dual struct {
	gram    []float32
	margins []float32
}

func (u *dual) margin(k int32) float32 { return u.margins[k] }

func (u *dual) add(k int32, d float32) {
	n := len(u.margins)
	blas32.Axpy(d, blas32.Vector{N: n, Data: u.gram[int(k)*n : int(k)*n+n], Inc: 1}, blas32.Vector{N: n, Data: u.margins, Inc: 1})
}

func (u *dual) reset(n int) {
	u.margins = slices.Grow(u.margins[:0], n)[:n]
	clear(u.margins)
}
