package pairs

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// draw returns orders with that many lines in all, one after the other, and where each ends. Items are drawn with
// probabilities that fall by the power 0.8 of their rank. An order has 1 + 9·(u^-½ − 1) items, u uniform in (0, 1): ten
// on average, and at most 600.
func draw(lines, items int) (all []int32, ends []int) {
	r := rand.New(rand.NewPCG(5, 6))
	const power, most = 0.8, 600
	for len(all) < lines {
		begin := len(all)
		for range min(1+int(9*(math.Pow(1-r.Float64(), -0.5)-1)), most) {
			all = append(all, int32(float64(items)*math.Pow(r.Float64(), 1/(1-power))))
		}
		slices.Sort(all[begin:])
		all = all[:begin+len(slices.Compact(all[begin:]))]
		ends = append(ends, len(all))
	}
	return all, ends
}

// drawn is an incidence of the orders that draw returns.
func drawn(b *testing.B, lines, items int) *Incidence {
	b.Helper()
	all, ends := draw(lines, items)
	x, begin := New(items, 0), 0
	for _, end := range ends {
		if _, err := x.Add(all[begin:end], end-begin); err != nil {
			b.Fatal(err)
		}
		begin = end
	}
	return x
}

// BenchmarkPartners adds orders of ten million lines of a million items, and counts the partners of all items. It runs
// on one goroutine.
func BenchmarkPartners(b *testing.B) {
	const items, lines, share = 1_000_000, 10_000_000, 1 << 16
	drawn, ends := draw(lines, items)
	rule := Rule{MinSupport: 3, MinAssociation: 0.2, MaxPartners: 20}
	for range b.N {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := New(items, 0)
		began, begin := time.Now(), 0
		for _, end := range ends {
			if _, err := x.Add(drawn[begin:end], end-begin); err != nil {
				b.Fatal(err)
			}
			begin = end
		}
		added := time.Since(began)
		runtime.GC()
		runtime.ReadMemStats(&after)
		million := float64(x.Lines()) / 1e6
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(x.Lines()), "bytes/line")
		b.ReportMetric(float64(x.Orders()), "orders")
		b.ReportMetric(added.Seconds()/million, "s/Mline-added")
		began = time.Now()
		found, counters := 0, x.NewCounters(1)
		for lo := 0; lo < items; lo += share {
			for _, p := range counters.Partners(lo, min(items, lo+share), rule) {
				found += len(p)
			}
		}
		b.ReportMetric(time.Since(began).Seconds()/million, "s/Mline-counted")
		b.ReportMetric(float64(found), "partners")
		runtime.KeepAlive(drawn)
	}
}

// BenchmarkAssociation makes the rows of a million items from orders of ten million lines, on one goroutine.
func BenchmarkAssociation(b *testing.B) {
	const items, lines, share, most = 1_000_000, 10_000_000, 1 << 12, 256
	x := drawn(b, lines, items)
	for b.Loop() {
		began, found := time.Now(), 0
		a := NewAssociation(x)
		for lo := 0; lo < items; lo += share {
			for _, row := range a.Rows(numbers(lo, min(items, lo+share)), most, 1, func(_, _ int32) bool { return false }) {
				found += len(row.Index)
			}
		}
		b.ReportMetric(time.Since(began).Seconds()/(float64(x.Lines())/1e6), "s/Mline")
		b.ReportMetric(float64(found), "associations")
	}
}
