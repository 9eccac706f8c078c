package pifa

import (
	"fmt"
	"math"
	"math/bits"

	"giantstream/featurize/internal/parallel"
	"giantstream/featurize/sparse"
)

// Weighting is the weight of an instance in the sums.
type Weighting uint8

const (
	// Sum gives every instance weight 1, as the paper writes it.
	Sum Weighting = iota
	// InverseSqrtDegree gives instance i weight 1/√|y_i|, as PECOS does: it
	// normalises the rows of Y, so an instance with many labels says less about each.
	InverseSqrtDegree
)

func (w Weighting) String() string {
	switch w {
	case Sum:
		return "sum"
	case InverseSqrtDegree:
		return "inverse-sqrt-degree"
	}
	return fmt.Sprintf("Weighting(%d)", uint8(w))
}

// Of returns the weight of an instance with that many labels.
func (w Weighting) Of(degree int) float32 {
	if w == InverseSqrtDegree && degree > 0 {
		return float32(1 / math.Sqrt(float64(degree)))
	}
	return 1
}

// Exact returns the L × V embeddings of the labels from the features x (n × V)
// and the labels y (n × L) of the instances; a row each, of length 1, or empty for
// a label without instances (workers ≤ 0: one per CPU).
//
// It goes over the features twice, first to count the entries of each row: the
// result is large (on 63,666 package descriptions 87 million entries), and so never has
// to be moved to a larger place.
func Exact(x, y *sparse.Matrix, w Weighting, workers int) *sparse.Matrix {
	const block = 64
	instances := y.Transpose()
	workers = parallel.Workers(workers)
	sums := make([]*accumulator, workers)
	z := &sparse.Matrix{Rows: y.Cols, Cols: x.Cols, Start: make([]int64, y.Cols+1)}
	parallel.Each(y.Cols, block, workers, func(worker, _, lo, hi int) {
		if sums[worker] == nil {
			sums[worker] = newAccumulator(x.Cols)
		}
		for l := lo; l < hi; l++ {
			z.Start[l+1] = sums[worker].count(x, instances.Row(l).Index)
		}
	})
	for l := range y.Cols {
		z.Start[l+1] += z.Start[l]
	}
	z.Index, z.Value = make([]int32, z.NNZ()), make([]float32, z.NNZ())
	parallel.Each(y.Cols, block, workers, func(worker, _, lo, hi int) {
		if sums[worker] == nil {
			sums[worker] = newAccumulator(x.Cols)
		}
		for l := lo; l < hi; l++ {
			row := z.Row(l)
			for _, i := range instances.Row(l).Index {
				sums[worker].add(x.Row(int(i)), w.Of(int(y.Start[i+1]-y.Start[i])))
			}
			sums[worker].drain(row)
			normalize(row.Value)
		}
	})
	return z
}

// accumulator adds sparse vectors. It remembers the dimensions in use as a set
// of bits, which gives them back in order without sorting.
type accumulator struct {
	sum []float32
	// Bit j%64 of used[j/64] stands for dimension j; bit k%64 of
	// usedWords[k/64] says that used[k] is not 0.
	used, usedWords []uint64
}

func newAccumulator(dim int) *accumulator {
	words := (dim + 63) / 64
	return &accumulator{sum: make([]float32, dim), used: make([]uint64, words), usedWords: make([]uint64, (words+63)/64)}
}

// count returns how many dimensions these rows of x have between them. The
// accumulator must be empty, and is afterwards.
func (a *accumulator) count(x *sparse.Matrix, rows []int32) (n int64) {
	if len(rows) == 1 {
		i := rows[0]
		return x.Start[i+1] - x.Start[i]
	}
	for _, i := range rows {
		a.mark(x.Row(int(i)).Index)
	}
	for at, words := range a.usedWords {
		for ; words != 0; words &= words - 1 {
			k := at*64 + bits.TrailingZeros64(words)
			n += int64(bits.OnesCount64(a.used[k]))
			a.used[k] = 0
		}
		a.usedWords[at] = 0
	}
	return n
}

func (a *accumulator) mark(index []int32) {
	for _, j := range index {
		k := uint32(j) / 64
		a.used[k] |= 1 << (uint32(j) % 64)
		a.usedWords[k/64] |= 1 << (k % 64)
	}
}

func (a *accumulator) add(v sparse.Vector, weight float32) {
	a.mark(v.Index)
	value := v.Value[:len(v.Index)]
	for k, j := range v.Index {
		a.sum[j] += weight * value[k]
	}
}

// drain writes the sum to dst, which has room for it, and starts again.
func (a *accumulator) drain(dst sparse.Vector) {
	n := 0
	for at, words := range a.usedWords {
		for ; words != 0; words &= words - 1 {
			k := at*64 + bits.TrailingZeros64(words)
			for word := a.used[k]; word != 0; word &= word - 1 {
				j := k*64 + bits.TrailingZeros64(word)
				dst.Index[n], dst.Value[n] = int32(j), a.sum[j]
				a.sum[j] = 0
				n++
			}
			a.used[k] = 0
		}
		a.usedWords[at] = 0
	}
}
