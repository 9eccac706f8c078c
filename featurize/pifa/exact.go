package pifa

import (
	"giantstream/featurize/internal/scatter"
	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/internal/vector"
)

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
	sums := make([]*scatter.Sum, workers)
	each := func(body func(sum *scatter.Sum, label int, instances []int32)) {
		parallel.ForEach(y.Cols, block, workers, func(worker, _, lo, hi int) {
			if sums[worker] == nil {
				sums[worker] = scatter.New(x.Cols)
			}
			for l := lo; l < hi; l++ {
				body(sums[worker], l, instances.Row(l).Index)
			}
		})
	}
	z := &sparse.Matrix{Rows: y.Cols, Cols: x.Cols, Start: make([]int64, y.Cols+1)}
	each(func(sum *scatter.Sum, l int, instances []int32) {
		if len(instances) == 1 {
			z.Start[l+1] = int64(len(x.Row(int(instances[0])).Index))
			return
		}
		for _, i := range instances {
			sum.Mark(x.Row(int(i)).Index)
		}
		z.Start[l+1] = sum.Count()
	})
	for l := range y.Cols {
		z.Start[l+1] += z.Start[l]
	}
	z.Index, z.Value = make([]int32, z.NNZ()), make([]float32, z.NNZ())
	each(func(sum *scatter.Sum, l int, instances []int32) {
		for _, i := range instances {
			sum.Add(x.Row(int(i)), w.WeightOf(float64(y.Start[i+1]-y.Start[i])))
		}
		row := z.Row(l)
		sum.Drain(sparse.Vector{Index: row.Index[:0], Value: row.Value[:0]})
		vector.Normalize(row.Value)
	})
	return z
}
