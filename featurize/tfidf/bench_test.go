package tfidf

import (
	"fmt"
	"runtime"
	"testing"

	"giantstream/internal/graphdir/graphdirtest"
)

// BenchmarkDebian fits and transforms 63,666 package descriptions (26 MB).
func BenchmarkDebian(b *testing.B) {
	g := graphdirtest.Load(b, "debian-packages")
	size := 0
	for _, text := range g.Texts {
		size += len(text)
	}
	for _, tc := range []struct {
		name string
		opt  Options
	}{{"default", DefaultOptions()}, {"pecos", PECOSOptions()}} {
		m := fit(b, tc.opt, 0, g.Texts...)
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("fit/%s/workers=%d", tc.name, workers), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					fit(b, tc.opt, workers, g.Texts...)
				}
				b.ReportMetric(float64(m.Dim()), "features")
			})
			b.Run(fmt.Sprintf("transform/%s/workers=%d", tc.name, workers), func(b *testing.B) {
				b.SetBytes(int64(size))
				var nnz int64
				for b.Loop() {
					nnz = m.TransformAll(g.Texts, workers).NNZ()
				}
				b.ReportMetric(float64(nnz), "nonzeros")
			})
		}
		runtime.GC()
	}
}
