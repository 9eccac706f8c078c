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
	"giantstream/config"
	"giantstream/train/answer"
)

// route is what the server answers at a path.
type route struct {
	pattern string // of http.ServeMux
	handler http.Handler
	// open to every request. The handlers of all other routes are behind an endpoint.Gate, which asks for the scope,
	// and their queries have the parameters alone.
	open       bool
	scope      string
	parameters []string
}

// routes are / (a page to watch, with /status.json and /map.json for its data), /metrics, /healthz (the process need
// not be restarted), /readyz (the process can do its work), /config (the settings in force, and changes of them), and
// with the role serve what answer.Handler does. Orchestrators call the health checks without credentials; errors in
// them name objects, no texts. The page holds no data.
func (a *Answer) routes(until <-chan struct{}) []route {
	settings := http.HandlerFunc(a.serveConfig)
	maps := &mapServer{store: a.Store, current: a.Served.Current, until: until, draw: drawMap}
	metrics := promhttp.HandlerFor(a.Registry, promhttp.HandlerOpts{EnableOpenMetrics: a.Exemplars})
	routes := []route{
		{pattern: "GET /{$}", handler: http.HandlerFunc(live.ServePage), open: true},
		{pattern: "/healthz", handler: http.HandlerFunc(a.serveHealth), open: true},
		{pattern: "/readyz", handler: http.HandlerFunc(a.serveReadiness), open: true},
		{pattern: "/metrics", handler: metrics, scope: config.ScopeRead, parameters: []string{"name[]"}},
		{pattern: "GET /status.json", handler: a.Live, scope: config.ScopeRead},
		{pattern: "GET /map.json", handler: maps, scope: config.ScopeRead},
		{pattern: "GET /config", handler: settings, scope: config.ScopeAdmin},
		{pattern: "PUT /config", handler: settings, scope: config.ScopeAdmin},
	}
	if a.Catalog != nil {
		questions := answer.Handler(a.Catalog, answer.Serving{Ends: a.Ends, Encodes: mayEncode,
			Observe: a.observer.answered})
		fresh := answer.FreshParameters
		wanted := slices.Concat(fresh, answer.Parameters)
		for _, name := range answer.Lists {
			wanted = append(wanted, name+endpoint.List)
		}
		question := func(pattern, scope string, parameters ...string) {
			routes = append(routes, route{pattern: pattern, handler: questions, scope: scope, parameters: parameters})
		}
		question("GET "+answer.SimilarPath, config.ScopeRead, slices.Concat(wanted, []string{"diversity"})...)
		question("POST /similar", config.ScopeRead, fresh...)
		question("GET /goes-with", config.ScopeRead, append([]string{"id" + endpoint.List}, wanted...)...)
		question("POST /goes-with", config.ScopeRead, fresh...)
		question("POST /embed", config.ScopeEmbed, fresh...)
		question("POST "+answer.OpenAIPath, config.ScopeEmbed, fresh...)
		question("GET /openapi.json", config.ScopeRead)
	}
	return routes
}

// mayEncode says why the client of a request may not have texts encoded, nil if it may.
func mayEncode(r *http.Request) error { return endpoint.May(r.Context(), config.ScopeEmbed) }

// handlerOf answers the routes.
func (a *Answer) handlerOf(routes []route) http.Handler {
	gate := endpoint.NewGate(func() *config.HTTP { return &a.Settings.Get().HTTP }, nil)
	gate.Refused = a.observer.refuse
	mux := http.NewServeMux()
	var byID http.Handler
	var ofAdmins []string
	for _, r := range routes {
		h := r.handler
		if !r.open {
			_, path, _ := strings.Cut(r.pattern, " ")
			if r.scope == config.ScopeAdmin {
				ofAdmins = append(ofAdmins, path)
			}
			refuse := answer.Refuse(path)
			h = gate.Protect(r.scope, refuse, endpoint.Parameters(h, refuse, r.parameters...))
		}
		if strings.HasSuffix(r.pattern, answer.SimilarPath) {
			byID = h
			continue
		}
		mux.Handle(r.pattern, h)
	}
	all := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		get := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch p := r.URL.Path; {
		case byID != nil && get && strings.HasPrefix(p, answer.SimilarPath):
			byID.ServeHTTP(w, r) // an id may be any path, and a ServeMux would redirect it to a clean one
		case byID != nil && strings.HasPrefix(p, answer.SimilarPath):
			a.answerMissing(w, r, http.HandlerFunc(onlyGet))
		case p != path.Clean(p):
			a.answerMissing(w, r, http.NotFoundHandler()) // the clean path may have the id of another node
		default:
			if h, pattern := mux.Handler(r); pattern == "" {
				a.answerMissing(w, r, h)
				return
			}
			mux.ServeHTTP(w, r)
		}
	})
	return endpoint.AllowOrigins(a.HTTP.CORS.Origins, ofAdmins, all)
}

// onlyGet refuses another method, as a ServeMux does.
func onlyGet(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	w.WriteHeader(http.StatusMethodNotAllowed)
}

// serveHTTP answers until ctx ends.
func (a *Answer) serveHTTP(ctx context.Context) error {
	a.Live.StopReadsOn(ctx.Done())
	return endpoint.Serve(ctx, a.HTTP, a.Registry, a.Log, a.handlerOf(a.routes(ctx.Done())))
}

func (a *Answer) serveHealth(w http.ResponseWriter, _ *http.Request) {
	endpoint.Answer(w, "ok", a.Health.Unhealthy())
}

func (a *Answer) serveReadiness(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	endpoint.Answer(w, "ready", a.Health.Unready(ctx))
}
