package service

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"giantstream/cmd/internal/endpoint"
	"giantstream/cmd/internal/live"
	"giantstream/train/answer"
)

// serveHTTP answers / (a page to watch, with /status.json and /map.json for its data), /metrics, /healthz (the
// process need not be restarted), /readyz (the process can do its work) and /config (the settings in force, and
// changes of them), and with the role serve what answer.Handler does, until ctx ends. With http.token, all but the
// page, which holds no data, and the health checks ask for it. Orchestrators call these without credentials, and
// errors in them name objects, no texts.
func (s *Service) serveHTTP(ctx context.Context) error {
	s.live.Until(ctx.Done())
	s.maps.until = ctx.Done()
	mux := http.NewServeMux()
	mux.Handle("/metrics", endpoint.Authorized(string(s.cfg.HTTP.Token),
		promhttp.HandlerFor(s.metrics.registry,
			promhttp.HandlerOpts{EnableOpenMetrics: s.cfg.Telemetry.Traces.Exemplars})))
	mux.Handle("GET /status.json", endpoint.Authorized(string(s.cfg.HTTP.Token), s.live))
	settings := private(string(s.cfg.HTTP.Token), http.HandlerFunc(s.serveConfig))
	mux.Handle("GET /config", settings)
	mux.Handle("PUT /config", settings)
	mux.Handle("GET /map.json", endpoint.Authorized(string(s.cfg.HTTP.Token), &s.maps))
	mux.HandleFunc("GET /{$}", live.ServePage)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { endpoint.Answer(w, "ok", s.unhealthy()) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		endpoint.Answer(w, "ready", s.unready(ctx))
	})
	if s.catalog != nil {
		questions := endpoint.Authorized(string(s.cfg.HTTP.Token), answer.Handler(s.catalog, s.metrics.answered))
		for _, path := range []string{"/similar", "/similar/", "/embed", "/openapi.json"} {
			mux.Handle(path, questions)
		}
	}
	return endpoint.Serve(ctx, s.cfg.HTTP.Listen, mux)
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
