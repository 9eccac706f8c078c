package projection

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

const (
	// panelWidth is how many columns are made orthonormal at a time. Products
	// with the columns before them are float32 and fast; among themselves they
	// are measured in float64, which costs in proportion to the width.
	panelWidth = 32
	// rankTolerance: directions whose squared length is less than this part of
	// the longest column's are rounding errors of float32.
	rankTolerance = 1e-11
	// spanTolerance: of a unit vector that is independent of the columns before
	// it, less than this is never lost by taking their parts out once more.
	spanTolerance = 0.25
)

// orthonormalize replaces the n × l matrix y by an orthonormal basis of its
// columns, n × rank, and returns the rank.
//
// It is block Gram-Schmidt, each panel of columns freed twice of those before:
// the first time leaves, of nearly dependent columns, much of float32's
// rounding, the second removes it (Giraud et al., 2005: twice is enough).
func orthonormalize(y []float32, n, l int) (rank int, err error) {
	tolerance := rankTolerance * longest(y, n, l)
	for from := 0; from < l; from += panelWidth {
		width := min(panelWidth, l-from)
		subtractSpan(columns(y, n, l, 0, rank), columns(y, n, l, from, width))
		if width, err = panelBasis(columns(y, n, l, from, width), tolerance); err != nil {
			return 0, err
		}
		subtractSpan(columns(y, n, l, 0, rank), columns(y, n, l, from, width))
		if width, err = panelBasis(columns(y, n, l, from, width), spanTolerance); err != nil {
			return 0, err
		}
		for i := range n {
			copy(y[i*l+rank:i*l+rank+width], y[i*l+from:i*l+from+width])
		}
		rank += width
	}
	for i := range n {
		copy(y[i*rank:(i+1)*rank], y[i*l:i*l+rank])
	}
	if rank == 0 {
		return 0, ErrNoData
	}
	return rank, nil
}

// columns is a view of some columns of the n × l matrix y.
func columns(y []float32, n, l, from, width int) blas32.General {
	return blas32.General{Rows: n, Cols: width, Stride: l, Data: y[from:]}
}

// longest is the largest squared length of a column of the n × l matrix y.
func longest(y []float32, n, l int) float64 {
	squares := make([]float64, l)
	for i := range n {
		for k, v := range y[i*l : (i+1)*l] {
			squares[k] += float64(v) * float64(v)
		}
	}
	var most float64
	for _, s := range squares {
		most = max(most, s)
	}
	return most
}

// subtractSpan takes from p its parts along the orthonormal columns of q.
func subtractSpan(q, p blas32.General) {
	if q.Cols == 0 || p.Cols == 0 {
		return
	}
	along := blas32.General{Rows: q.Cols, Cols: p.Cols, Stride: p.Cols, Data: make([]float32, q.Cols*p.Cols)}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, q, p, 0, along)
	blas32.Gemm(blas.NoTrans, blas.NoTrans, -1, q, along, 1, p)
}

// panelBasis replaces the columns of p by an orthonormal basis of their span,
// from the left, and returns how many there are. Directions whose squared
// length is below the tolerance are dropped.
func panelBasis(p blas32.General, tolerance float64) (rank int, err error) {
	n, l := p.Rows, p.Cols
	if l == 0 {
		return 0, nil
	}
	wide := blas64.General{Rows: n, Cols: l, Stride: l, Data: make([]float64, n*l)}
	for i := range n {
		for k, v := range p.Data[i*p.Stride : i*p.Stride+l] {
			wide.Data[i*l+k] = float64(v)
		}
	}
	gram := mat.NewSymDense(l, nil)
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, wide, wide, 0, general(gram))
	vectors, values, err := eigen(gram)
	if err != nil {
		return 0, err
	}
	for rank < len(values) && values[rank] > tolerance {
		rank++
	}
	if rank == 0 {
		return 0, nil
	}
	scaled := mat.NewDense(l, rank, nil)
	for k, v := range values[:rank] {
		f := 1 / math.Sqrt(v)
		for i := range l {
			scaled.Set(i, k, vectors.At(i, k)*f)
		}
	}
	basis := blas64.General{Rows: n, Cols: rank, Stride: rank, Data: make([]float64, n*rank)}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, wide, scaled.RawMatrix(), 0, basis)
	for i := range n {
		row := p.Data[i*p.Stride:]
		for k, v := range basis.Data[i*rank : (i+1)*rank] {
			row[k] = float32(v)
		}
	}
	return rank, nil
}
