package live

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Quantiles are those of Prometheus' histogram_quantile.
func TestQuantile(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "giantstream_test", Buckets: []float64{1, 2, 4}})
	registry.MustRegister(h)
	find := func() Metric {
		t.Helper()
		all, err := gather(registry)
		if err != nil {
			t.Fatal(err)
		}
		return all["giantstream_test"][0]
	}
	if m := find(); m.P50 != nil || m.P99 != nil {
		t.Errorf("of nothing: %v, %v", m.P50, m.P99)
	}
	for _, v := range []float64{0.5, 0.5, 1.5, 3} {
		h.Observe(v)
	}
	m := find()
	if *m.P50 != 1 || math.Abs(*m.P99-(2+2*(0.99*4-3)/1)) > 1e-9 {
		t.Errorf("p50 %v, p99 %v", *m.P50, *m.P99)
	}
	for range 100 {
		h.Observe(1000)
	}
	if m := find(); *m.P99 != 4 {
		t.Errorf("beyond the last bucket: %v", *m.P99)
	}
}
