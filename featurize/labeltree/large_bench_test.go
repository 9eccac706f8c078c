package labeltree_test

import (
	"fmt"
	"strings"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/internal/graphdir/graphdirtest"
)

// BenchmarkTenCopies builds the tree over the sketch of ten copies of
// debian-packages, made as cmd/bench/large makes them: the first word of every text
// carries the copy's number. The sketch takes minutes and is not timed.
func BenchmarkTenCopies(b *testing.B) {
	const dim, copies = 256, 10
	g := graphdirtest.Load(b, "debian-packages")
	texts := func(k int) []string {
		out := make([]string, len(g.Texts))
		for i, text := range g.Texts {
			first, _, _ := strings.Cut(text, " ")
			out[i] = fmt.Sprintf("%s%d%s", first, k, text[len(first):])
		}
		return out
	}
	fitter, err := tfidf.NewFitter(tfidf.DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	for k := range copies {
		fitter.AddAll(texts(k), 0)
	}
	m, err := fitter.Fit()
	if err != nil {
		b.Fatal(err)
	}
	var p *projection.Projection
	var rows []float32
	for k := range copies {
		x := m.TransformAll(texts(k), 0)
		if k == 0 {
			if p, err = projection.Fit(x, dim, projection.Options{Seed: 1}); err != nil {
				b.Fatal(err)
			}
		}
		s, err := pifa.FromGraph(p.ApplyAll(x, 0), dim, g.Neighbours, pifa.Sum, 0)
		if err != nil {
			b.Fatal(err)
		}
		rows = append(rows, s.Normalized()...)
	}
	f, err := labeltree.Dense(rows, dim)
	if err != nil {
		b.Fatal(err)
	}
	for _, sample := range []int{-1, 200_000, 50_000, 10_000, 5_000} {
		b.Run(fmt.Sprint(sample), func(b *testing.B) {
			for b.Loop() {
				begin := cpuTime(b)
				tree, err := labeltree.Build(f, labeltree.Options{Seed: 1, Sample: sample})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric((cpuTime(b) - begin).Seconds(), "CPU-s")
				for _, level := range []int{0, tree.Levels() - 1} {
					b.ReportMetric(tree.MeanCosine(level, f, 0), fmt.Sprintf("cosine-of-%d", tree.Clusters(level)))
				}
			}
		})
	}
}
