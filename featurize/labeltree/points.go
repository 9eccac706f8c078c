package labeltree

import (
	"fmt"
	"math"

	"giantstream/featurize/internal/portable"
	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
)

// Features are the label features that a tree is built over: a row per label, of
// length 1, or zero for labels to be left out. Dense and Sparse make them.
type Features interface {
	points
	// Len returns the number of labels.
	Len() int
	isZero(i int32) bool
	isFinite(i int32) bool
	// compact returns the same points for the work below one cluster: point
	// k is row members[k]. It may use the memory of what it returned last, and
	// is for one worker. ok is false where there is nothing to be gained.
	compact(members []int32, last points) (p points, ok bool)
}

// points are rows of numbers, as splits need them. The results of no method depend
// on the number of workers.
type points interface {
	width() int
	// accumulate adds the rows of members, times weight -1, 0 or 1, to sum.
	accumulate(members []int32, weight []int8, sum []float32, workers int)
	// dots writes the dot products of the rows of members with v.
	dots(members []int32, v []float32, out []float32, workers int)
	// lone returns the squared length of what row i has in dimensions that no
	// other row has and that are left out of sums and dot products.
	lone(i int32) float32
	// reset zeroes what members added to sum.
	reset(members []int32, sum []float32)
}

// Dense returns n × dim row-major features.
func Dense(values []float32, dim int) (Features, error) {
	if dim < 1 || len(values)%dim != 0 {
		return nil, fmt.Errorf("labeltree: %d values are no rows of %d dimensions", len(values), dim)
	}
	return dense{values, dim}, nil
}

// dotBlock is how many rows a worker scores at a time.
const dotBlock = 256

type dense struct {
	values []float32
	dim    int
}

func (d dense) Len() int              { return len(d.values) / d.dim }
func (d dense) width() int            { return d.dim }
func (d dense) row(i int32) []float32 { return d.values[int(i)*d.dim : (int(i)+1)*d.dim] }

func (d dense) isZero(i int32) bool   { return allZero(d.row(i)) }
func (d dense) isFinite(i int32) bool { return allFinite(d.row(i)) }

func (d dense) compact([]int32, points) (points, bool) { return nil, false }

func (d dense) lone(int32) float32 { return 0 }

// accumulate gives every worker dimensions of its own.
func (d dense) accumulate(members []int32, weight []int8, sum []float32, workers int) {
	share := (d.dim + workers - 1) / workers
	parallel.ForEach(d.dim, share, workers, func(_, _, lo, hi int) {
		for k, m := range members {
			if w := weight[k]; w > 0 {
				portable.Add(d.row(m)[lo:hi], sum[lo:hi])
			} else if w < 0 {
				portable.Sub(d.row(m)[lo:hi], sum[lo:hi])
			}
		}
	})
}

func (d dense) dots(members []int32, v []float32, out []float32, workers int) {
	parallel.ForEach(len(members), dotBlock, workers, func(_, _, lo, hi int) {
		for k, m := range members[lo:hi] {
			out[lo+k] = portable.Dot(d.row(m), v)
		}
	})
}

func (d dense) reset(_ []int32, sum []float32) { clear(sum) }

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

// Sparse returns the rows of a matrix as features.
func Sparse(m *sparse.Matrix) Features { return &sparseRows{Matrix: m} }
