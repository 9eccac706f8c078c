package pifa

import (
	"fmt"
	"math"
	"slices"

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
func Exact(x, y *sparse.Matrix, w Weighting, workers int) *sparse.Matrix {
	const block = 256
	instances := y.Transpose()
	workers = parallel.Workers(workers)
	sums := make([]*accumulator, workers)
	parts := make([]sparse.Vector, parallel.Blocks(y.Cols, block))
	z := &sparse.Matrix{Rows: y.Cols, Cols: x.Cols, Start: make([]int64, y.Cols+1)}
	parallel.Each(y.Cols, block, workers, func(worker, b, lo, hi int) {
		if sums[worker] == nil {
			sums[worker] = &accumulator{sum: make([]float32, x.Cols), seen: make([]bool, x.Cols)}
		}
		for l := lo; l < hi; l++ {
			for _, i := range instances.Row(l).Index {
				sums[worker].add(x.Row(int(i)), w.Of(int(y.Start[i+1]-y.Start[i])))
			}
			parts[b] = sums[worker].drain(parts[b])
			z.Start[l+1] = int64(len(parts[b].Index)) // within the block, for now
		}
	})
	var nnz int64
	for b, part := range parts {
		for l := b * block; l < min(y.Cols, (b+1)*block); l++ {
			z.Start[l+1] += nnz
		}
		nnz += int64(len(part.Index))
	}
	z.Index, z.Value = make([]int32, 0, nnz), make([]float32, 0, nnz)
	for b, part := range parts {
		z.Index, z.Value = append(z.Index, part.Index...), append(z.Value, part.Value...)
		parts[b] = sparse.Vector{}
	}
	return z
}

// accumulator adds sparse vectors.
type accumulator struct {
	sum   []float32
	seen  []bool
	index []int32
}

func (a *accumulator) add(v sparse.Vector, weight float32) {
	for k, j := range v.Index {
		if !a.seen[j] {
			a.seen[j] = true
			a.index = append(a.index, j)
		}
		a.sum[j] += weight * v.Value[k]
	}
}

// drain appends the sum, brought to length 1, to dst and starts again.
func (a *accumulator) drain(dst sparse.Vector) sparse.Vector {
	slices.Sort(a.index)
	var square float64
	for _, j := range a.index {
		square += float64(a.sum[j]) * float64(a.sum[j])
	}
	scale := 1 / math.Sqrt(square)
	for _, j := range a.index {
		dst.Index = append(dst.Index, j)
		dst.Value = append(dst.Value, float32(float64(a.sum[j])*scale))
		a.sum[j], a.seen[j] = 0, false
	}
	a.index = a.index[:0]
	return dst
}
