package sinks

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"giantstream/ingest/client"
	"giantstream/sink/vectordb"
)

// metrics are served at /metrics; docs/OPERATIONS.md says what each is for.
type metrics struct {
	registry *prometheus.Registry
	records  *prometheus.CounterVec
	retries  prometheus.Counter
	lag      *prometheus.GaugeVec
	// served and filling are generations.
	served, filling prometheus.Gauge
	// failing is since when the database has failed, in nanoseconds; 0 while it does not.
	failing atomic.Int64
	written atomic.Int64
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "giantstream_sink_records_total",
			Help: "Records brought into the database by this process, by kind: upsert, delete or skipped."},
			[]string{"kind"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_sink_retries_total",
			Help: "Requests to the database that failed and were made again."}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "giantstream_sink_lag_records",
			Help: "Records of a partition of the embeddings topic that are not in the database yet."},
			[]string{"shard"}),
		served: prometheus.NewGauge(prometheus.GaugeOpts{Name: "giantstream_sink_generation",
			Help: "The generation that readers of the database see; 0 for none."}),
		filling: prometheus.NewGauge(prometheus.GaugeOpts{Name: "giantstream_sink_filling_generation",
			Help: "The newest generation that is being filled in; 0 for none."}),
	}
	for _, kind := range []string{"upsert", "delete", "skipped"} {
		m.records.WithLabelValues(kind) // from 0 on
	}
	m.registry.MustRegister(m.records, m.retries, m.lag, m.served, m.filling, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) applied(upserts, deletes int) {
	m.written.Add(int64(upserts + deletes))
	m.records.WithLabelValues("upsert").Add(float64(upserts))
	m.records.WithLabelValues("delete").Add(float64(deletes))
}

func (m *metrics) retried() {
	m.failing.CompareAndSwap(0, time.Now().UnixNano())
	m.retries.Inc()
}

func (m *metrics) recovered() { m.failing.Store(0) }

// measure sets the gauges and returns how many records are behind in all; known is false before every partition has
// answered.
func (m *metrics) measure(f *vectordb.Follower, readers []*client.Reader) (lag int64, known bool) {
	known = true
	for p, r := range readers {
		end, ok := r.End()
		if !ok {
			known = false
			continue
		}
		behind := max(0, end-max(0, f.Next(p)))
		m.lag.WithLabelValues(strconv.Itoa(p)).Set(float64(behind))
		lag += behind
	}
	s := f.State()
	m.served.Set(float64(s.Served))
	m.filling.Set(float64(s.Filling))
	return lag, known
}
