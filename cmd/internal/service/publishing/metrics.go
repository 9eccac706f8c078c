package publishing

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	published, canaryPublished, attributes prometheus.Counter
	freshness                              prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		published: prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_embeddings_published_total",
			Help: "Embeddings and tombstones acknowledged by the sink topic."}),
		canaryPublished: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "giantstream_canary_embeddings_published_total",
			Help: "Embeddings and tombstones acknowledged by the canary topic, sink.canary_topic."}),
		attributes: prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_attributes_published_total",
			Help: "Records of attributes acknowledged by the sink topic and the canary topic, sinks.attributes."}),
		freshness: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "giantstream_embedding_freshness_seconds",
			Help:    "From a change's event time until the sink topic has acknowledged its embedding.",
			Buckets: []float64{0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300, 1800, 7200}})}
	r.MustRegister(m.published, m.canaryPublished, m.attributes, m.freshness)
	return m
}
