package service

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"giantstream/cmd/internal/live"
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
	return do(t, req, token)
}

// do sends a request with a token, unless it is "".
func do(t *testing.T, req *http.Request, token string) fetched {
	t.Helper()
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

// The page is the same for everybody and holds no data; its data ask for the token.
func TestPageIsOpenAndItsDataAreNot(t *testing.T) {
	_, cfg := testService(t, &memstore.Store{}, listen(t), func(c *config.Config) { c.HTTP.Token = "s3cret" })
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	res := request(t, cfg, http.MethodGet, "/", "")
	if res.status != http.StatusOK || !strings.Contains(res.body, "<html") {
		t.Errorf("/: %d, %.100s", res.status, res.body)
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
	var doc live.Document
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
	if doc.Pipeline != "test" || doc.Status.(map[string]any)["hello"] != "<b>& test" || doc.Reasons["bad_type"] == "" ||
		doc.Progress != nil || doc.Unready != "" {
		t.Errorf("%+v", doc)
	}
}
