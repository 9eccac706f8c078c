package labeltree

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/featurize/sparse"
)

// Features are the label features that a tree is built over: a row per label, of
// length 1, or zero for labels to be left out. Dense and Sparse make them.
type Features interface {
	// Len returns the number of labels.
	Len() int
	// blockSize returns how many members one partial sum covers.
	blockSize(members int) int
	width() int
	isZero(i int32) bool
	isFinite(i int32) bool
	// add adds row i to sum; reset zeroes what members added to sum.
	add(i int32, sum []float32)
	reset(members []int32, sum []float32)
	// dots returns the dot products of row i with left and right.
	dots(i int32, left, right []float32) (l, r float32)
}

// Dense returns n × dim row-major features.
func Dense(values []float32, dim int) (Features, error) {
	if dim < 1 || len(values)%dim != 0 {
		return nil, fmt.Errorf("labeltree: %d values are no rows of %d dimensions", len(values), dim)
	}
	return dense{values, dim}, nil
}

// Sparse returns the rows of a matrix as features.
func Sparse(m *sparse.Matrix) Features { return sparseRows{m} }

type dense struct {
	values []float32
	dim    int
}

func (d dense) Len() int                  { return len(d.values) / d.dim }
func (d dense) width() int                { return d.dim }
func (d dense) blockSize(members int) int { return max(1024, (members+255)/256) }
func (d dense) row(i int32) []float32     { return d.values[int(i)*d.dim : (int(i)+1)*d.dim] }

func (d dense) isZero(i int32) bool   { return allZero(d.row(i)) }
func (d dense) isFinite(i int32) bool { return allFinite(d.row(i)) }

func (d dense) vector(v []float32) blas32.Vector { return blas32.Vector{N: d.dim, Inc: 1, Data: v} }

func (d dense) add(i int32, sum []float32) {
	blas32.Axpy(1, d.vector(d.row(i)), d.vector(sum))
}

func (d dense) reset(_ []int32, sum []float32) { clear(sum) }

func (d dense) dots(i int32, left, right []float32) (l, r float32) {
	x := d.vector(d.row(i))
	return blas32.Dot(x, d.vector(left)), blas32.Dot(x, d.vector(right))
}

type sparseRows struct{ m *sparse.Matrix }

func (s sparseRows) Len() int                  { return s.m.Rows }
func (s sparseRows) width() int                { return s.m.Cols }
func (s sparseRows) blockSize(members int) int { return max(1024, (members+7)/8) }
func (s sparseRows) isZero(i int32) bool       { return allZero(s.m.Row(int(i)).Value) }
func (s sparseRows) isFinite(i int32) bool     { return allFinite(s.m.Row(int(i)).Value) }

func (s sparseRows) add(i int32, sum []float32) {
	row := s.m.Row(int(i))
	for k, j := range row.Index {
		sum[j] += row.Value[k]
	}
}

func (s sparseRows) reset(members []int32, sum []float32) {
	for _, i := range members {
		for _, j := range s.m.Row(int(i)).Index {
			sum[j] = 0
		}
	}
}

func (s sparseRows) dots(i int32, left, right []float32) (l, r float32) {
	row := s.m.Row(int(i))
	for k, j := range row.Index {
		l += row.Value[k] * left[j]
		r += row.Value[k] * right[j]
	}
	return l, r
}

func allZero(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

func allFinite(v []float32) bool {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return true
}
