package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"giantstream/ingest/feed"
	"giantstream/stream"
	"giantstream/train/generation"
)

// metrics are what /metrics shows. Names follow Prometheus' conventions.
type metrics struct {
	registry      *prometheus.Registry
	feed          feed.Metrics
	manifests     prometheus.Counter
	rows          prometheus.Counter
	shardRestarts prometheus.Counter
	generation    prometheus.Gauge
	// unknownLabels counts in whichever generation is served.
	unknownLabels atomic.Int64
	ngrams        generation.NGramCount
}

func newMetrics() *metrics {
	m := &metrics{
		registry:      prometheus.NewRegistry(),
		manifests:     prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_manifests_committed_total", Help: "Windows committed by this process."}),
		rows:          prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_rows_committed_total", Help: "Rows committed by this process."}),
		shardRestarts: prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_shard_restarts_total", Help: "Shards started again after a failure."}),
		generation:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "giantstream_generation", Help: "The generation being served, 0 before the first."}),
	}
	m.registry.MustRegister(m.manifests, m.rows, m.shardRestarts, m.generation)
	for name, c := range map[string]struct {
		help string
		load func() int64
	}{
		"giantstream_records_read_total": {"Input records read, dead-lettered ones included.", m.feed.Records.Load},
		"giantstream_bytes_read_total":   {"Bytes of input records read.", m.feed.Bytes.Load},
		"giantstream_dead_letters_total": {"Records sent to the dead-letter topic.", m.feed.DeadLetters.Load},
		"giantstream_offsets_lost_total": {"Offsets deleted from a topic before they were read.", m.feed.Lost.Load},
		"giantstream_fetch_retries_total": {"Fetches that failed and were tried again.",
			m.feed.Retries.Load},
		"giantstream_labels_unknown_total": {"Labels of rows built by this process that are in no cluster of the generation served: newer than it, deleted or isolated.",
			m.unknownLabels.Load},
		"giantstream_ngrams_total":         {"N-grams of the texts of rows built by this process.", m.ngrams.Total},
		"giantstream_ngrams_unknown_total": {"Those of them that are no features of the generation served.", m.ngrams.Unknown},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: c.help},
			func() float64 { return float64(c.load()) }))
	}
	return m
}

func (m *metrics) committed(c *stream.Manifest) {
	m.manifests.Inc()
	m.rows.Add(float64(c.Rows))
}

// serveHTTP answers /metrics, /healthz (the process runs) and /readyz (the
// store and the broker answer) until ctx ends.
func (s *Service) serveHTTP(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if _, _, err := s.backlog(ctx); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.HTTP.Listen)
	if err != nil {
		return fmt.Errorf("http.listen: %w; choose another address, or \"\" for none", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // metrics have no work in flight to save
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
