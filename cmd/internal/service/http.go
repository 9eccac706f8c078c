package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serveHTTP answers /metrics, /healthz (nothing that a restart would mend is
// wrong) and /readyz (this process does its part) until ctx ends.
func (s *Service) serveHTTP(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "ok", s.unhealthy()) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		answer(w, "ready", s.unready(ctx))
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

// answer is 200, or 503 with the reason.
func answer(w http.ResponseWriter, good, bad string) {
	if bad != "" {
		http.Error(w, "not "+good+": "+bad, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, good)
}
