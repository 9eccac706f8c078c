package service

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/internal/freeport"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// get asks the service's HTTP.
func get(t *testing.T, cfg *config.Config, path string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cfg.HTTP.Listen+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error() // not listening yet
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// sum adds up the samples of a metric whose labels contain a string.
func sum(t *testing.T, text, name, labels string) (total float64, found bool) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], labels) {
			v, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			total, found = total+v, true
		}
	}
	return total, found
}

func listen(t *testing.T) func(*config.Config) {
	t.Helper()
	addr, err := freeport.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func(c *config.Config) { c.HTTP.Listen = addr }
}

// With a token, metrics are for those who have it. Health checks are open.
func TestMetricsAskForTheToken(t *testing.T) {
	_, cfg := testService(t, &memstore.Store{}, listen(t), func(c *config.Config) { c.HTTP.Token = "s3cret" })
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	for header, want := range map[string]int{
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer s3cre": 401, "Bearer s3cret2": 401, "s3cret": 401,
		"Basic s3cret": 401, "Bearer s3cret": 200,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+cfg.HTTP.Listen+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want || want != 200 && strings.Contains(string(body), "giantstream_") {
			t.Errorf("%q: %d, want %d\n%.200s", header, res.StatusCode, want, body)
		}
	}
}

// A client that sends more headers than any scraper does is turned away.
func TestHTTPBoundsWhatItReads(t *testing.T) {
	_, cfg := testService(t, &memstore.Store{}, listen(t))
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+cfg.HTTP.Listen+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", 1<<20))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return // the connection was closed
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", res.StatusCode)
	}
}

func TestMetricsAndProbesTellWhatTheServiceDoes(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{}, listen(t))
	produceGraph(t, s, cfg)
	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{"bad": 7})
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A change that comes while the generation is being published is published with it, as one record.
	if err := s.WaitPublished(t.Context()); err != nil {
		t.Fatal(err)
	}
	produce(t, s, cfg.Kafka.Topics.Nodes,
		map[string]any{nodeID(0): map[string]any{"id": nodeID(0), "text": text(0, 2)}})
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitPublished(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		eventually(t, path, func() bool { code, _ := get(t, cfg, path); return code == http.StatusOK })
	}
	_, text := get(t, cfg, "/metrics")
	for _, want := range []struct {
		name, labels string
		least, most  float64
	}{
		{"giantstream_build_info", `goversion="go`, 1, 1},
		{"giantstream_shards", "", 2, 2},
		{"giantstream_shards_assigned", "", 2, 2},
		{"giantstream_shard_restoring", "", 0, 0},
		{"giantstream_shard_restore_seconds_count", "", 2, 2},
		{"giantstream_checkpoints_total", "", 2, 100},
		{"giantstream_checkpoint_bytes_total", "", 1000, 1e8},
		{"giantstream_checkpoint_failures_total", "", 0, 0},
		{"giantstream_lag_records", `topic="nodes"`, 0, 0},
		{"giantstream_lag_records", `topic="edges"`, 0, 0},
		{"giantstream_window_age_seconds", "", 0, 60},
		{"giantstream_records_read_total", "", 3*nodes + 2, 6 * nodes},
		{"giantstream_rows_committed_total", "", nodes + 1, 6 * nodes},
		{"giantstream_dead_letters_total", "", 1, 1},
		{"giantstream_dead_letters_total", `code="bad_type"`, 1, 1},
		{"giantstream_embeddings_published_total", "", nodes + 1, 6 * nodes},
		{"giantstream_embedding_freshness_seconds_count", "", 1, 1},
		{"giantstream_generation", "", 1, 1},
		{"giantstream_refresh_building", "", 0, 0},
		{"giantstream_refresh_failures_total", "", 0, 0},
		{"go_goroutines", "", 1, 1e6},
	} {
		if got, found := sum(t, text, want.name, want.labels); !found || got < want.least || got > want.most {
			t.Errorf("%s{%s} is %v (found: %v), want %v to %v",
				want.name, want.labels, got, found, want.least, want.most)
		}
	}
	names := regexp.MustCompile(`(?m)^# TYPE (giantstream_\S+)`).FindAllStringSubmatch(text, -1)
	checkMetricsAreDocumented(t, names)
}

// checkMetricsAreDocumented wants a line of docs/OPERATIONS.md for each.
func checkMetricsAreDocumented(t *testing.T, names [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if !strings.Contains(string(page), "`"+n[1]+"`") {
			t.Errorf("docs/OPERATIONS.md does not say what %s is", n[1])
		}
	}
}

func TestAServiceIsNotReadyWhileItsStoreOrAShardIsNot(t *testing.T) {
	store := &breakable{Store: &memstore.Store{}}
	s, cfg := testService(t, store, listen(t))
	eventually(t, "both shards have come, and it is ready", func() bool {
		if len(s.ingest.Watches.States()) < cfg.Shards { // an answer from before the second has come says nothing of it
			return false
		}
		code, _ := get(t, cfg, "/readyz")
		return code == http.StatusOK
	})

	// A shard that does not get to what is committed.
	_, done := s.ingest.Watches.Open(99, &commitlog.Manifest{Next: map[string]int64{"nodes": 5}})
	if code, body := get(t, cfg, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body,
		"shard 99") {
		t.Errorf("%d %s with a shard that is being restored", code, body)
	}
	done()

	store.broken.Store(true)
	if code, body := get(t, cfg, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body,
		"broken") {
		t.Errorf("%d %s without a store", code, body)
	}
	if code, body := get(t, cfg, "/healthz"); code != http.StatusOK {
		t.Errorf("%d %s without a store: a restart would not mend it", code, body)
	}
	store.broken.Store(false)
	eventually(t, "ready again", func() bool { code, _ := get(t, cfg, "/readyz"); return code == http.StatusOK })
}

// breakable is a store that can be made to fail.
type breakable struct {
	sink.Store
	broken atomic.Bool
}

func (b *breakable) Open(ctx context.Context, key string) (sink.Object, error) {
	if b.broken.Load() {
		return nil, errors.New("broken")
	}
	return b.Store.Open(ctx, key)
}

func (b *breakable) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	if b.broken.Load() {
		return func(yield func(sink.Info, error) bool) { yield(sink.Info{}, errors.New("broken")) }
	}
	return b.Store.List(ctx, prefix, after)
}
