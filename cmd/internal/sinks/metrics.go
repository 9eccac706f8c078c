package sinks

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"giantstream/sink/vectordb"
)

// Writes are the metrics of a process that writes to a database.
type Writes struct {
	Registry *prometheus.Registry
	records  *prometheus.CounterVec
	retries  prometheus.Counter
	// failing is since when the database has failed, in nanoseconds; 0 while it does not.
	failing atomic.Int64
	written atomic.Int64
}

// register makes the metrics, and a registry with these and others.
func (w *Writes) register(others ...prometheus.Collector) {
	w.Registry = prometheus.NewRegistry()
	w.records = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "giantstream_sink_records_total",
		Help: "Records brought into the database by this process, by kind: upsert, delete, attributes or skipped."},
		[]string{"kind"})
	w.retries = prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_sink_retries_total",
		Help: "Requests to the database that failed and were made again."})
	for _, kind := range []string{"upsert", "delete", "attributes", "skipped"} {
		w.records.WithLabelValues(kind) // from 0 on
	}
	w.Registry.MustRegister(append(others, w.records, w.retries, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))...)
}

// NewWrites returns the metrics, in a registry with others.
func NewWrites(others ...prometheus.Collector) *Writes {
	w := &Writes{}
	w.register(others...)
	return w
}

// Applied counts what was handed to the database.
func (w *Writes) Applied(upserts, deletes, attributes int) {
	w.written.Add(int64(upserts + deletes + attributes))
	w.records.WithLabelValues("upsert").Add(float64(upserts))
	w.records.WithLabelValues("delete").Add(float64(deletes))
	w.records.WithLabelValues("attributes").Add(float64(attributes))
}

// Retried implements retry.Watcher.
func (w *Writes) Retried() {
	w.failing.CompareAndSwap(0, time.Now().UnixNano())
	w.retries.Inc()
}

// Recovered implements retry.Watcher.
func (w *Writes) Recovered() { w.failing.Store(0) }

// Failing says that the database has not taken what is written for a while, "" if it does.
func (w *Writes) Failing(now time.Time) string {
	if since := w.failing.Load(); since != 0 && now.Sub(time.Unix(0, since)) > failingFor {
		return "the database does not take what is written; the log says why"
	}
	return ""
}

// metrics are those of a sink of embeddings.
type metrics struct {
	Writes
	// served and filling are generations.
	served, filling prometheus.Gauge
}

// newMetrics returns the metrics, with those of a source.
func newMetrics(source prometheus.Collector) *metrics {
	m := &metrics{
		served: prometheus.NewGauge(prometheus.GaugeOpts{Name: "giantstream_sink_generation",
			Help: "The generation that readers of the database see; 0 for none."}),
		filling: prometheus.NewGauge(prometheus.GaugeOpts{Name: "giantstream_sink_filling_generation",
			Help: "The newest generation that is being filled in; 0 for none."}),
	}
	m.register(source, m.served, m.filling)
	return m
}

// measure sets the gauges.
func (m *metrics) measure(s vectordb.State) {
	m.served.Set(float64(s.Served))
	m.filling.Set(float64(s.Filling))
}
