package service

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/similar"
)

// Bounds of the HTTP server, whose clients ask for a page now and then.
const (
	httpReadTime   = 10 * time.Second // of a request, headers included
	httpWriteTime  = 30 * time.Second // of an answer
	httpIdleTime   = 2 * time.Minute  // of a connection between requests
	httpHeaderSize = 16 << 10         // bytes
)

// serveHTTP answers / (a page to watch, with /status.json and /map.json for its data), /metrics, /healthz (the
// process need not be restarted), /readyz (the process can do its work) and /config (the settings in force, and
// changes of them), and with the role serve what similar.Handler does, until ctx ends. With http.token, all but the
// page, which holds no data, and the health checks ask for it. Orchestrators call these without credentials, and
// errors in them name objects, no texts.
func (s *Service) serveHTTP(ctx context.Context) error {
	s.live.Until(ctx.Done())
	s.maps.until = ctx.Done()
	mux := http.NewServeMux()
	mux.Handle("/metrics", authorized(string(s.cfg.HTTP.Token),
		promhttp.HandlerFor(s.metrics.registry,
			promhttp.HandlerOpts{EnableOpenMetrics: s.cfg.Telemetry.Traces.Exemplars})))
	mux.Handle("GET /status.json", authorized(string(s.cfg.HTTP.Token), s.live))
	settings := private(string(s.cfg.HTTP.Token), http.HandlerFunc(s.serveConfig))
	mux.Handle("GET /config", settings)
	mux.Handle("PUT /config", settings)
	mux.Handle("GET /map.json", authorized(string(s.cfg.HTTP.Token), &s.maps))
	mux.HandleFunc("GET /{$}", live.ServePage)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "ok", s.unhealthy()) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		answer(w, "ready", s.unready(ctx))
	})
	if s.catalog != nil {
		questions := authorized(string(s.cfg.HTTP.Token), similar.Handler(s.catalog, s.metrics.answered))
		for _, path := range []string{"/similar", "/similar/", "/embed", "/openapi.json"} {
			mux.Handle(path, questions)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.HTTP.Listen)
	if err != nil {
		return fmt.Errorf("http.listen: %w; choose another address, or \"\" for none", err)
	}
	server := &http.Server{Handler: mux, ReadTimeout: httpReadTime, WriteTimeout: httpWriteTime,
		IdleTimeout: httpIdleTime, MaxHeaderBytes: httpHeaderSize}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // metrics have no work in flight to save
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newView returns what the page at / shows of this process.
func (s *Service) newView(o Options) *live.View {
	p := live.Process{Pipeline: s.cfg.Pipeline, Name: writerName(), Roles: strings.Split(s.roles.String(), ","),
		Metrics: s.metrics.registry, Unready: s.unready, Index: s.liveIndex, Drift: s.drifted}
	if o.Status != nil {
		p.Status = func(ctx context.Context) (any, error) { return o.Status(ctx, s) }
	}
	return live.New(p, o.Progress)
}

// liveIndex is the index of similar items for the page, nil without the role serve or before it is read.
func (s *Service) liveIndex() *live.Index {
	if s.catalog == nil {
		return nil
	}
	size, err := s.catalog.Size()
	if err != nil {
		return nil
	}
	return &live.Index{Generation: size.Generation, Nodes: size.Nodes}
}

// authorized passes on requests that bear the token; "" passes on all. The comparison takes the same
// time wherever the tokens differ, and of whatever length they are.
func authorized(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		have := sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(have[:], want[:]) != 1 || !bearer {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this page asks for the token of http.token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answer responds with 200, or with 503 and the reason.
func answer(w http.ResponseWriter, good, bad string) {
	if bad != "" {
		http.Error(w, "not "+good+": "+bad, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, good)
}
