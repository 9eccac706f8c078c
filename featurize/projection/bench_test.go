package projection

import (
	"math"
	"runtime"
	"testing"

	"giantstream/featurize/tfidf"
	"giantstream/internal/graphdir/graphdirtest"
)

// BenchmarkDebian fits 512 dimensions on 63,666 package descriptions and
// projects them. kept is the mean squared length that a text of length 1 keeps.
func BenchmarkDebian(b *testing.B) {
	g := graphdirtest.Load(b, "debian-packages")
	f, err := tfidf.NewFitter(tfidf.DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	f.AddAll(g.Texts, 0)
	m, err := f.Fit()
	if err != nil {
		b.Fatal(err)
	}
	x := m.TransformAll(g.Texts, 0)
	p := mustFit(b, x, 512, Options{})
	b.Run("fit", func(b *testing.B) {
		for b.Loop() {
			mustFit(b, x, 512, Options{})
		}
		runtime.GC()
		b.ReportMetric(float64(len(p.matrix)*4)/(1<<20), "MiB")
		b.ReportMetric(p.Singular()[0], "first-singular")
		b.ReportMetric(p.Singular()[p.Dim()-1], "last-singular")
	})
	b.Run("apply", func(b *testing.B) {
		var kept float64
		for b.Loop() {
			kept = 0
			for _, v := range p.ApplyAll(x, 0) {
				kept += float64(v) * float64(v)
			}
		}
		b.ReportMetric(math.Round(1000*kept/float64(x.Rows))/1000, "kept")
		b.ReportMetric(float64(x.Rows*b.N)/b.Elapsed().Seconds(), "texts/s")
	})
}
