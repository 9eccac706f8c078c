package tfidf

import (
	"math"
	"runtime"
	"testing"

	"giantstream/internal/graphdir/graphdirtest"
)

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBudgetOnDebian counts 63,666 package descriptions in 16 MiB.
func TestBudgetOnDebian(t *testing.T) {
	if testing.Short() {
		t.Skip("counts a whole graph's texts twice")
	}
	g := graphdirtest.Load(t, "debian-packages")
	opt := DefaultOptions()
	exact := fit(t, opt, 0, g.Texts...)
	opt.MemoryBudget = 16 << 20
	before := heap()
	f := fitter(t, opt)
	f.AddAll(g.Texts, 1)
	if took := heap() - before; took > opt.MemoryBudget {
		t.Errorf("counting took %d bytes, the budget is %d", took, opt.MemoryBudget)
	}
	m, err := f.Fit()
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]int{}
	for i := range m.Dim() {
		kept[m.Feature(i)] = i
	}
	same := 0
	for i := range exact.Dim() {
		df := math.Round(float64(exact.Docs())/math.Exp(float64(exact.IDF(i)))) - 1
		k, ok := kept[exact.Feature(i)]
		if !ok && df >= float64(opt.Parts[Word1].MinDF+f.Undercount(exact.PartOf(i))) {
			t.Errorf("%s is in %v documents and was forgotten", exact.Feature(i), df)
		}
		if ok && m.IDF(k) == exact.IDF(i) {
			same++
		}
	}
	t.Logf("%d of %d features kept, %d with the same idf; errors up to %d, %d and %d documents", m.Dim(),
		exact.Dim(), same,
		f.Undercount(Word1), f.Undercount(Word2), f.Undercount(Char3))
	runtime.KeepAlive(f)
}
