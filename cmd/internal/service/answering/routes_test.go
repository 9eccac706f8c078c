package answering

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/endpoint"
	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/service/settings"
	"giantstream/config"
	"giantstream/internal/canary"
	"giantstream/sink/memstore"
	"giantstream/train/answer"
	"giantstream/train/generation"
)

// well is the Health of a process that can do its work.
type well struct{}

func (well) Unhealthy() string                { return "" }
func (well) Unready(_ context.Context) string { return "" }

// serve returns the routes of a process of all roles, and their handler. Every secret of the configuration is a canary.
func serve(t *testing.T, change func(*config.HTTP)) ([]route, http.Handler) {
	t.Helper()
	return serveShards(t, 2, change)
}

// serveShards is serve for a number of shards, with 0 without the role serve.
func serveShards(t *testing.T, shards int, change func(*config.HTTP)) ([]route, http.Handler) {
	t.Helper()
	cfg := config.Default()
	n := 0
	cfg.EachField(func(_ string, v reflect.Value, _ config.Effect) {
		if v.Type() == reflect.TypeFor[config.Secret]() {
			n++
			v.SetString(canary.New(n))
		}
	})
	cfg.HTTP.Token = ""
	change(&cfg.HTTP)
	registry := prometheus.NewRegistry()
	a := &Answer{Store: &memstore.Store{}, Shards: shards, Served: &generation.Served{}, Settings: settings.New(&cfg,
		registry),
		HTTP: cfg.HTTP, Health: well{}, Registry: registry, Log: slog.New(slog.DiscardHandler),
		Live: live.New(live.Process{Metrics: registry, Unready: well{}.Unready, Index: func() *live.Index { return nil },
			Status: func(context.Context) (any, error) { return cfg, nil }}, nil)}
	a.Open()
	routes := a.routes(t.Context().Done())
	return routes, a.handlerOf(routes)
}

// request is one to a route, with an id where the route ends in one.
func request(t *testing.T, r route, query, host, token string) *http.Request {
	t.Helper()
	method, path, found := strings.Cut(r.pattern, " ")
	if !found {
		method, path = http.MethodGet, r.pattern
	}
	path = strings.TrimSuffix(path, "{$}")
	if path == "/similar/" {
		path += "x"
	}
	q := httptest.NewRequestWithContext(t.Context(), method, path+query, strings.NewReader(`{}`))
	q.Host, q.RemoteAddr = host, "127.0.0.1:5000"
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	return q
}

func answerTo(h http.Handler, q *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	return w
}

// Without a token, every route but the open ones answers requests alone that call the server by a name of its own: a
// page of another site cannot read it by DNS rebinding.
func TestEveryRouteChecksTheHost(t *testing.T) {
	routes, h := serve(t, func(c *config.HTTP) {
		c.Listen, c.Hosts = "Graph.internal:9464", config.List{"giantstream.shop.svc", "Catalog"}
	})
	if len(routes) < 12 {
		t.Fatalf("%d routes", len(routes))
	}
	own := []string{"127.0.0.1:9464", "127.0.0.1", "[::1]:9464", "[::1]", "[fe80::1%25eth0]:80", "10.1.2.3:9464",
		"localhost",
		"LOCALHOST:1", "localhost.:1", "graph.internal:9464", "giantstream.shop.svc:9464", "catalog", ""}
	foreign := []string{"evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example:9464",
		"graph.internal.evil.example", "svc", "2130706433.evil", "[evil]:9464", "giantstream"}
	for _, r := range routes {
		for _, host := range own {
			if w := answerTo(h, request(t, r, "", host, "")); w.Code == http.StatusForbidden {
				t.Errorf("%s for %q: %d %s", r.pattern, host, w.Code, w.Body)
			}
		}
		for _, host := range foreign {
			if w := answerTo(h, request(t, r, "", host, "")); (w.Code == http.StatusForbidden) == r.open {
				t.Errorf("%s for %q: %d %.100s", r.pattern, host, w.Code, w.Body)
			}
		}
	}
}

// With a token, every route but the open ones asks for it, whatever the host.
func TestEveryRouteAsksForTheToken(t *testing.T) {
	routes, h := serve(t, func(c *config.HTTP) { c.Token = "s3cret" })
	for _, r := range routes {
		if w := answerTo(h, request(t, r, "", "graph.example", "s3cret")); w.Code == http.StatusUnauthorized ||
			w.Code == http.StatusForbidden {
			t.Errorf("%s with the token: %d", r.pattern, w.Code)
		}
		for _, token := range []string{"", "s3cre", "s3cret2"} {
			if w := answerTo(h, request(t, r, "", "127.0.0.1",
				token)); (w.Code == http.StatusUnauthorized) == r.open {
				t.Errorf("%s with the token %q: %d", r.pattern, token, w.Code)
			}
		}
	}
}

// A token opens the routes of its scopes. What of the others is refused is said in the shape of the path's errors.
func TestEveryRouteAsksForItsScope(t *testing.T) {
	routes, h := serve(t, func(c *config.HTTP) {
		for _, scope := range []string{config.ScopeRead, config.ScopeEmbed, config.ScopeAdmin} {
			c.Tokens = append(c.Tokens, config.Bearer{Name: scope, Token: config.Secret("of-" + scope),
				Scopes: config.List{scope}})
		}
	})
	counts := map[string]int{}
	for _, r := range routes {
		if !r.open {
			counts[r.scope]++
		}
		for _, scope := range []string{config.ScopeRead, config.ScopeEmbed, config.ScopeAdmin} {
			w := answerTo(h, request(t, r, "", "graph.example", "of-"+scope))
			want := fmt.Sprintf(`"token \"%s\" lacks the scope %s"`, scope, r.scope)
			if may := r.open || scope == r.scope; may != (w.Code != http.StatusForbidden) ||
				!may && !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s with scope %s: %d %s", r.pattern, scope, w.Code, w.Body)
			}
			if shape := `{"error":{"code":null,"message":`; w.Code == http.StatusForbidden &&
				strings.HasPrefix(w.Body.String(), shape) != strings.HasSuffix(r.pattern, answer.OpenAIPath) {
				t.Errorf("%s: %s", r.pattern, w.Body)
			}
		}
	}
	if counts[config.ScopeRead] < 8 || counts[config.ScopeEmbed] != 2 || counts[config.ScopeAdmin] != 2 {
		t.Errorf("routes by scope: %v", counts)
	}
}

// Pages of the origins that are named may read every answer, refusals included, but settings; those of others may read
// nothing, and without origins no answer has a word of it. A page is told what it may send without a token.
func TestPagesOfNamedOriginsReadAnswers(t *testing.T) {
	const shop = "https://shop.example"
	for _, origins := range []config.List{nil, {"http://localhost:8000", shop}} {
		routes, h := serve(t, func(c *config.HTTP) { c.Token, c.CORS.Origins = "s3cret", origins })
		for _, r := range routes {
			for _, origin := range []string{"", shop, "http://localhost:8000", "https://shop.example:8443",
				"http://shop.example", "https://evil.example", "null", "https://shop.example.evil.example"} {
				may := slices.Contains(origins, origin) && r.scope != config.ScopeAdmin
				want := ""
				if may {
					want = origin
				}
				for _, token := range []string{"s3cret", "another"} {
					q := request(t, r, "", "graph.example", token)
					q.Header.Set("Origin", origin)
					w := answerTo(h, q)
					if w.Header().Get("Access-Control-Allow-Origin") != want ||
						w.Header().Get("Access-Control-Allow-Credentials") != "" ||
						(w.Header().Get("Vary") == "Origin") != (origins != nil) ||
						(w.Code == http.StatusUnauthorized) != (token == "another" && !r.open) {
						t.Errorf("%s for %q: %d %v", r.pattern, origin, w.Code, w.Header())
					}
				}
				q := request(t, r, "", "graph.example", "")
				q.Method, q.Body = http.MethodOptions, http.NoBody
				q.Header.Set("Origin", origin)
				q.Header.Set("Access-Control-Request-Method", "POST")
				w := answerTo(h, q)
				allowed := w.Code == http.StatusNoContent && w.Header().Get("Access-Control-Allow-Origin") == origin &&
					strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "Authorization")
				if allowed != may {
					t.Errorf("%s for %q, asked before: %d %v", r.pattern, origin, w.Code, w.Header())
				}
			}
		}
	}
}

// A request that no route is for is told what there is, in the shape of the path's errors.
func TestMissingRoutesSayWhatThereIs(t *testing.T) {
	_, h := serve(t, func(*config.HTTP) {})
	_, silent := serveShards(t, 0, func(*config.HTTP) {})
	for _, c := range []struct {
		h            http.Handler
		method, path string
		status       int
		want         string
	}{
		{h, "GET", "/goes-with/P1", 404,
			`{"error":"nothing is at /goes-with/P1: /openapi.json lists what can be asked"}`},
		{h, "GET", "/x/../similar/a", 404,
			`{"error":"nothing is at /x/../similar/a: /openapi.json lists what can be asked"}`},
		{h, "PUT", "/similar", 405, `{"error":"PUT is not a method of /similar: use POST"}`},
		{h, "GET", "/v1/models", 404, `{"error":{"code":null,"message":"nothing is at /v1/models: /openapi.json lists what ` +
			`can be asked","param":null,"type":"invalid_request_error"}}`},
		{silent, "POST", "/similar", 404,
			`{"error":"this process does not answer questions: its roles (--roles) lack serve"}`},
		{silent, "GET", "/x", 404, `{"error":"nothing is at /x"}`},
	} {
		w := answerTo(c.h, httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody))
		if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.want ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, w.Code, w.Body, c.status, c.want)
		}
	}
}

// Without a token, other machines neither see nor change settings.
func TestSettingsAreForThisMachine(t *testing.T) {
	routes, h := serve(t, func(*config.HTTP) {})
	for _, r := range routes {
		for _, remote := range []string{"192.0.2.7:1000", "[2001:db8::1]:1000"} {
			q := request(t, r, "", "127.0.0.1", "")
			q.RemoteAddr = remote
			if w := answerTo(h, q); (w.Code == http.StatusForbidden) != strings.HasSuffix(r.pattern, "/config") {
				t.Errorf("%s from %s: %d", r.pattern, remote, w.Code)
			}
		}
	}
}

// Every route but the open ones refuses parameters that it does not know, and names those that it knows.
func TestEveryRouteRefusesUnknownParameters(t *testing.T) {
	routes, h := serve(t, func(*config.HTTP) {})
	for _, r := range routes {
		for _, query := range []string{"?omit=a", "?page=", "?filter", "?K=3", "?dry_run=true", "?a;b",
			"?%zz=1"} {
			w := answerTo(h, request(t, r, query, "127.0.0.1", ""))
			if (w.Code == http.StatusBadRequest) == r.open {
				t.Errorf("%s%s: %d", r.pattern, query, w.Code)
			}
		}
		for _, known := range r.parameters {
			known, list := strings.CutSuffix(known, endpoint.List)
			query := "?" + known + "=3"
			if list {
				query += "&" + known + "=4"
			}
			if w := answerTo(h, request(t, r, query, "127.0.0.1", "")); strings.Contains(w.Body.String(), "parameter") {
				t.Errorf("%s?%s=3: %d %s", r.pattern, known, w.Code, w.Body)
			}
			w := answerTo(h, request(t, r, "?omit=a", "127.0.0.1", ""))
			if !strings.Contains(w.Body.String(), "known here: "+strings.Join(r.parameters, ", ")) {
				t.Errorf("%s does not name its parameters: %s", r.pattern, w.Body)
			}
		}
	}
}

// No path leads to another one: a redirect would change an id.
func TestNoPathIsRedirected(t *testing.T) {
	_, h := serve(t, func(*config.HTTP) {})
	for _, path := range []string{"//", "//similar/x", "/similar//x", "/similar/../x", "/similar/./x",
		"/similar/x/", "/similar/x//",
		"/x/../similar/x", "/config/", "/./status.json", "//healthz", "/similar"} {
		if w := answerTo(h, request(t, route{pattern: path}, "", "127.0.0.1", "")); w.Code/100 == 3 {
			t.Errorf("%s: %d to %s", path, w.Code, w.Header().Get("Location"))
		}
	}
}

// No answer has a secret of the configuration in it, whoever asks, and whatever is wrong with the request.
func TestNoRouteShowsSecrets(t *testing.T) {
	for i, token := range []string{"", canary.New(99), canary.New(98)} {
		routes, h := serve(t, func(c *config.HTTP) {
			if c.Token = config.Secret(token); i > 1 {
				c.Token, c.Tokens = "", []config.Bearer{{Name: "all", Token: config.Secret(token),
					Scopes: config.List{config.ScopeRead, config.ScopeEmbed, config.ScopeAdmin}}}
			}
		})
		for _, r := range routes {
			for _, body := range []string{"", "{}", "{", "kafka: {sasl: {password: x}}", "s3: {access_key: [",
				"http: {token: 'x"} {
				q := request(t, r, "", "127.0.0.1", token)
				q.Body = io.NopCloser(strings.NewReader(body))
				w := answerTo(h, q)
				said := fmt.Sprint(w.Code, w.Header(), w.Body)
				for n := range 100 {
					if how := canary.Find(said, canary.New(n)); how != "" {
						t.Fatalf("%s with %q shows a secret %s:\n%s", r.pattern, body, how, said)
					}
				}
			}
		}
	}
}
