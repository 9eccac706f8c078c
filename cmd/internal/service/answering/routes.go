package answering

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"giantstream/cmd/internal/endpoint"
	"giantstream/cmd/internal/live"
	"giantstream/train/answer"
)

// route is what the server answers at a path.
type route struct {
	pattern string // of http.ServeMux
	handler http.Handler
	// open to every request. The handlers of all other routes are behind endpoint.Protect, and their queries have
	// the parameters alone.
	open       bool
	parameters []string
}

// routes are / (a page to watch, with /status.json and /map.json for its data), /metrics, /healthz (the process need
// not be restarted), /readyz (the process can do its work), /config (the settings in force, and changes of them), and
// with the role serve what answer.Handler does. Orchestrators call the health checks without credentials; errors in
// them name objects, no texts. The page holds no data.
func (a *Answer) routes(until <-chan struct{}) []route {
	settings := http.Handler(http.HandlerFunc(a.serveConfig))
	if a.HTTP.Token == "" {
		settings = endpoint.FromThisMachine(settings)
	}
	maps := &mapServer{store: a.Store, current: a.Served.Current, until: until, draw: drawMap}
	metrics := promhttp.HandlerFor(a.Registry, promhttp.HandlerOpts{EnableOpenMetrics: a.Exemplars})
	routes := []route{
		{pattern: "GET /{$}", handler: http.HandlerFunc(live.ServePage), open: true},
		{pattern: "/healthz", handler: http.HandlerFunc(a.serveHealth), open: true},
		{pattern: "/readyz", handler: http.HandlerFunc(a.serveReadiness), open: true},
		{pattern: "/metrics", handler: metrics, parameters: []string{"name[]"}},
		{pattern: "GET /status.json", handler: a.Live},
		{pattern: "GET /map.json", handler: maps},
		{pattern: "GET /config", handler: settings},
		{pattern: "PUT /config", handler: settings},
	}
	if a.Catalog != nil {
		questions := answer.Handler(a.Catalog, a.answered)
		fresh := answer.FreshParameters
		wanted := slices.Concat(fresh, answer.Parameters)
		for _, name := range answer.Lists {
			wanted = append(wanted, name+endpoint.List)
		}
		routes = append(routes,
			route{pattern: "GET " + answer.SimilarPath, handler: questions, parameters: wanted},
			route{pattern: "POST /similar", handler: questions, parameters: fresh},
			route{pattern: "GET /goes-with", handler: questions,
				parameters: append([]string{"id" + endpoint.List, "explain"}, wanted...)},
			route{pattern: "POST /goes-with", handler: questions, parameters: fresh},
			route{pattern: "POST /embed", handler: questions, parameters: fresh},
			route{pattern: "POST " + answer.OpenAIPath, handler: questions, parameters: fresh},
			route{pattern: "GET /openapi.json", handler: questions})
	}
	return routes
}

// handlerOf answers the routes.
func (a *Answer) handlerOf(routes []route) http.Handler {
	mux := http.NewServeMux()
	var byID http.Handler
	for _, r := range routes {
		h := r.handler
		if !r.open {
			h = endpoint.Protect(a.HTTP, endpoint.Parameters(h, r.parameters...))
		}
		if strings.HasSuffix(r.pattern, answer.SimilarPath) {
			byID = h
			continue
		}
		mux.Handle(r.pattern, h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		get := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch p := r.URL.Path; {
		case byID != nil && get && strings.HasPrefix(p, answer.SimilarPath):
			byID.ServeHTTP(w, r) // an id may be any path, and a ServeMux would redirect it to a clean one
		case p != path.Clean(p):
			http.NotFound(w, r) // the clean path may have the id of another node
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// serveHTTP answers until ctx ends.
func (a *Answer) serveHTTP(ctx context.Context) error {
	a.Live.StopReadsOn(ctx.Done())
	return endpoint.Serve(ctx, a.HTTP.Listen, a.handlerOf(a.routes(ctx.Done())))
}

func (a *Answer) serveHealth(w http.ResponseWriter, _ *http.Request) {
	endpoint.Answer(w, "ok", a.Health.Unhealthy())
}

func (a *Answer) serveReadiness(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	endpoint.Answer(w, "ready", a.Health.Unready(ctx))
}
