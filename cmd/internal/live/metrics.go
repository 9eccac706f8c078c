package live

import (
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is a metric with one set of labels. A histogram has its quantiles since the process began, and its
// buckets (how many observations are at most so large), from which a page computes those of the last minutes.
type Metric struct {
	Labels  map[string]string `json:"labels,omitempty"`
	Value   float64           `json:"value"`
	Count   uint64            `json:"count,omitempty"`
	P50     *float64          `json:"p50,omitempty"`
	P99     *float64          `json:"p99,omitempty"`
	Buckets []Bucket          `json:"buckets,omitempty"`
}

// Bucket says how many observations are at most so large.
type Bucket struct {
	AtMost float64 `json:"at_most"`
	Count  uint64  `json:"count"`
}

// gather returns the metrics that are giantstream's own.
func gather(g prometheus.Gatherer) (map[string][]Metric, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	out := map[string][]Metric{}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "giantstream_") {
			continue
		}
		for _, m := range f.GetMetric() {
			one := Metric{Value: m.GetCounter().GetValue() + m.GetGauge().GetValue()} // one of them is nil, and 0
			for _, l := range m.GetLabel() {
				if one.Labels == nil {
					one.Labels = map[string]string{}
				}
				one.Labels[l.GetName()] = l.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				one.Value, one.Count = h.GetSampleSum(), h.GetSampleCount()
				for _, b := range h.GetBucket() {
					if !math.IsInf(b.GetUpperBound(), 1) {
						one.Buckets = append(one.Buckets, Bucket{b.GetUpperBound(), b.GetCumulativeCount()})
					}
				}
				one.P50, one.P99 = quantile(one, 0.5), quantile(one, 0.99)
			}
			if math.IsNaN(one.Value) || math.IsInf(one.Value, 0) {
				continue // JSON has neither
			}
			out[name] = append(out[name], one)
		}
	}
	return out, nil
}

// quantile is Prometheus' histogram_quantile: the place in the bucket, as if its observations lay evenly. It is the
// upper bound of the last bucket where the quantile lies beyond, and nil without observations.
func quantile(m Metric, q float64) *float64 {
	if m.Count == 0 || len(m.Buckets) == 0 {
		return nil
	}
	rank := q * float64(m.Count)
	lower, below := 0.0, 0.0
	for _, b := range m.Buckets {
		if n := float64(b.Count); n >= rank && n > below {
			return new(lower + (b.AtMost-lower)*(rank-below)/(n-below))
		}
		lower, below = b.AtMost, float64(b.Count)
	}
	return &lower
}
