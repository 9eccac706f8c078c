package service

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/config"
	"giantstream/sink/memstore"
)

// fetched is what the service has answered.
type fetched struct {
	status int
	header http.Header
	body   string
}

// request asks the service with a token.
func request(t *testing.T, cfg *config.Config, method, path, token string) fetched {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+cfg.HTTP.Listen+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return fetched{res.StatusCode, res.Header, string(body)}
}

// says sets what the status of a running service is.
func says(s *Service, read func(context.Context, *Service) (any, error)) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	s.live.read = read
}

// The page is the same for everybody and holds no data; its data ask for the token.
func TestPageIsOpenAndItsDataAreNot(t *testing.T) {
	_, cfg := testService(t, &memstore.Store{}, listen(t), func(c *config.Config) { c.HTTP.Token = "s3cret" })
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	res := request(t, cfg, http.MethodGet, "/", "")
	if res.status != http.StatusOK || res.body != pageHTML {
		t.Errorf("/: %d, %.100s", res.status, res.body)
	}
	policy := res.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'",
		"frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Count(pageHTML, "<script") != 1 ||
		strings.Count(pageHTML, "<style") != 1 {
		t.Error("the policy lets more run than the page's one script and one style")
	}
	// Nothing of an answer is put into the page as HTML, and nothing is fetched from elsewhere.
	for _, not := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "src=",
		"https://"} {
		if strings.Contains(pageHTML, not) {
			t.Errorf("the page has %s", not)
		}
	}
	for token, want := range map[string]int{"": 401, "wrong": 401, "s3cret": 200} {
		res := request(t, cfg, http.MethodGet, "/status.json", token)
		if res.status != want || want == 401 && strings.Contains(res.body, "pipeline") {
			t.Errorf("with token %q: %d, want %d, %.100s", token, res.status, want, res.body)
		}
	}
	if res := request(t, cfg, http.MethodPost, "/", "s3cret"); res.status != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", res.status)
	}
	if res := request(t, cfg, http.MethodGet, "/nothing", "s3cret"); res.status != http.StatusNotFound {
		t.Errorf("GET /nothing: %d", res.status)
	}
}

// /status.json has the numbers of /metrics, the windows, and what its owner says the status is.
func TestStatusDocumentHasTheNumbersOfMetrics(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{}, listen(t))
	says(s, func(context.Context, *Service) (any, error) { return map[string]string{"hello": "<b>&"}, nil })
	produceGraph(t, s, cfg)
	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{"bad": 7})
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitPublished(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	res := request(t, cfg, http.MethodGet, "/status.json", "")
	if res.status != http.StatusOK || res.header.Get("Content-Type") != "application/json" ||
		res.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %s", res.status, res.header, res.body)
	}
	var doc liveStatus
	if err := json.Unmarshal([]byte(res.body), &doc); err != nil {
		t.Fatal(err)
	}
	_, text := get(t, cfg, "/metrics")
	for _, name := range []string{"giantstream_rows_committed_total", "giantstream_embeddings_published_total",
		"giantstream_dead_letters_total", "giantstream_generation", "giantstream_shards_assigned"} {
		want, _ := sum(t, text, name, "")
		got := 0.0
		for _, m := range doc.Metrics[name] {
			got += m.Value
		}
		if got != want || doc.Metrics[name] == nil {
			t.Errorf("%s is %v, /metrics says %v", name, got, want)
		}
	}
	var rows int64
	for _, w := range doc.Windows {
		rows += w.Rows
	}
	if want := doc.Metrics["giantstream_rows_committed_total"][0].Value; float64(rows) != want {
		t.Errorf("the windows have %d rows, %v were committed", rows, want)
	}
	if doc.Pipeline != "test" || doc.Status.(map[string]any)["hello"] != "<b>&" || doc.Reasons["bad_type"] == "" ||
		doc.Progress != nil || doc.Unready != "" {
		t.Errorf("%+v", doc)
	}
}

// A store that hangs keeps one read waiting, and the page is answered without.
func TestStatusDocumentOfAStoreThatHangs(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{}, listen(t))
	asked := make(chan struct{}, 100)
	says(s, func(ctx context.Context, _ *Service) (any, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // whoever asks does not wait
	for range 5 {
		doc, err := s.live.document(ctx)
		if err != nil || doc.Pipeline != "test" || doc.Status != nil {
			t.Fatalf("%+v, %v", doc, err)
		}
	}
	<-asked
	if len(asked) > 0 {
		t.Errorf("%d reads at a time", 1+len(asked))
	}
}

// Quantiles are those of Prometheus' histogram_quantile.
func TestQuantile(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "giantstream_test", Buckets: []float64{1, 2, 4}})
	registry.MustRegister(h)
	find := func() liveMetric {
		t.Helper()
		all, err := gather(registry)
		if err != nil {
			t.Fatal(err)
		}
		return all["giantstream_test"][0]
	}
	if m := find(); m.P50 != nil || m.P99 != nil {
		t.Errorf("of nothing: %v, %v", m.P50, m.P99)
	}
	for _, v := range []float64{0.5, 0.5, 1.5, 3} {
		h.Observe(v)
	}
	m := find()
	if *m.P50 != 1 || math.Abs(*m.P99-(2+2*(0.99*4-3)/1)) > 1e-9 {
		t.Errorf("p50 %v, p99 %v", *m.P50, *m.P99)
	}
	for range 100 {
		h.Observe(1000)
	}
	if m := find(); *m.P99 != 4 {
		t.Errorf("beyond the last bucket: %v", *m.P99)
	}
}
