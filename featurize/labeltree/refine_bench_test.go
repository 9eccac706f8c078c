package labeltree_test

import (
	"fmt"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/internal/graphdir/graphdirtest"
	"giantstream/internal/parallel"
)

// BenchmarkRefinement builds the upper levels over the sketch of
// debian-packages, and the levels below within each cluster over the exact PIFA of its
// labels, so that only that is in memory. What came of it is in docs/measurements/2026-11-23.md:
// the tree over all of exact PIFA is better and costs less.
func BenchmarkRefinement(b *testing.B) {
	const dim, leaves = 256, 1024
	g := graphdirtest.Load(b, "debian-packages")
	x := vectors(b, g.Texts, tfidf.PECOSOptions())
	begin := cpuTime(b)
	p, err := projection.Fit(x, dim, projection.Options{Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	s, err := pifa.FromGraph(p.ApplyAll(x, 0), dim, g.Neighbours, pifa.InverseSqrtDegree, 0)
	if err != nil {
		b.Fatal(err)
	}
	f, err := labeltree.Dense(s.Normalized(), dim)
	if err != nil {
		b.Fatal(err)
	}
	sketch := cpuTime(b) - begin
	weigh(x, g.Neighbours)
	instances := g.Neighbours.Transpose()
	for _, top := range []int{8, 32, 128, 512} {
		b.Run(fmt.Sprintf("below-%d", top), func(b *testing.B) {
			for b.Loop() {
				begin := cpuTime(b)
				upper, err := labeltree.Build(f, labeltree.Options{Levels: []int{top}, Seed: 1})
				if err != nil {
					b.Fatal(err)
				}
				cosine, labels := make([]float64, top), 0
				parallel.ForEach(top, 1, 0, func(_, _, c, _ int) {
					members := upper.Members(0, int32(c))
					z := labeltree.Sparse(exactOf(x, instances, members))
					lower, err := labeltree.Build(z, labeltree.Options{Levels: []int{leaves / top}, Seed: 1,
						Workers: 1})
					if err != nil {
						b.Error(err)
						return
					}
					cosine[c] = lower.MeanCosine(0, z, 1) * float64(len(members))
				})
				var total float64
				for c := range top {
					total += cosine[c]
					labels += len(upper.Members(0, int32(c)))
				}
				b.ReportMetric(total/float64(labels), "cosine")
				b.ReportMetric((sketch + cpuTime(b) - begin).Seconds(), "CPU-s")
			}
		})
	}
}

// weigh scales the features of the instances as InverseSqrtDegree does.
func weigh(x, y *sparse.Matrix) {
	for i := range x.Rows {
		w := pifa.InverseSqrtDegree.WeightOf(float64(len(y.Row(i).Index)))
		for k := range x.Row(i).Value {
			x.Row(i).Value[k] *= w
		}
	}
}

// exactOf returns the exact PIFA of some labels, from their instances alone.
func exactOf(x, instances *sparse.Matrix, labels []int32) *sparse.Matrix {
	number := map[int32]int32{}
	own := &sparse.Matrix{Cols: x.Cols, Start: []int64{0}}
	y := &sparse.Matrix{Start: []int64{0}} // labels × instances
	for _, l := range labels {
		var row sparse.Vector
		for _, i := range instances.Row(int(l)).Index {
			if _, ok := number[i]; !ok {
				number[i] = int32(len(number))
				own.Append(x.Row(int(i)))
			}
			row.Index = append(row.Index, number[i])
		}
		y.Append(row)
	}
	y.Cols = len(number)
	return pifa.Exact(own, y.Transpose(), pifa.Sum, 1)
}
