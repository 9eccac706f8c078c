package service

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/config"
	"giantstream/ingest/decode"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
	measured "giantstream/train/generation/drift"
)

// Every field that is declared live takes effect in a service that runs.
func TestLiveFieldsTakeEffect(t *testing.T) { //nolint:gocyclo // one field after the other
	level := new(slog.LevelVar)
	s, cfg := startService(t, Options{Store: &memstore.Store{}, Log: slog.New(slog.DiscardHandler),
		Level: level}, listen(t), func(c *config.Config) {
		c.Shards = 1
		c.Window = config.Window{Changes: 1 << 30, Bytes: 1 << 40, Time: time.Hour, Compression: "zstd"}
		c.Refresh.MinNodes, c.Refresh.MinChanges, c.Refresh.MaxAge = 1<<30, 1<<30, 1000*time.Hour
	})
	ctx := t.Context()
	manifests := func() int64 {
		head, err := s.heads.Newest(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if head == nil {
			return 0
		}
		return head.Seq
	}
	committed := func(before int64) {
		t.Helper()
		eventually(t, "a window is committed", func() bool { return manifests() > before })
	}
	node := func(id, text string) {
		produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{id: map[string]any{"id": id, "text": text}})
	}
	refused := func(code decode.Code) {
		t.Helper()
		eventually(t, "a dead letter "+string(code), func() bool { return s.ingest.Feeds.Metrics.Letters(code) > 0 })
	}
	due := func() string {
		t.Helper()
		yes, why, err := s.refresh.Due(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !yes {
			return ""
		}
		return why
	}
	newest := func() *generation.Doc {
		t.Helper()
		if err := s.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		doc, _, err := s.UpToDate(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	// drifted says what asks for a generation once every measure is far worse than at the cut.
	drifted := func() string {
		measure := func(atCut, now float64) measured.Measure {
			return measured.Measure{Cases: measured.MinCases, Now: &now, AtCut: &atCut}
		}
		s.refresh.Evidence.Store(&measured.Evidence{Generation: s.Current().Doc.Generation, UnknownNGrams: measure(0.1, 0.6),
			LabelFit: measure(0.9, 0.1), LinkAUC: measure(0.9, 0.1), Cosine: measure(1, 0.1)})
		defer s.refresh.Evidence.Store(nil)
		return s.refresh.BecauseDrifted(10, 100)
	}
	asks := func(what string) {
		t.Helper()
		if why := drifted(); !strings.Contains(why, what) {
			t.Errorf("due because of %q, want %q", why, what)
		}
	}
	answered := func(token string) int {
		status, _ := send(t, cfg, http.MethodGet, "", token, "")
		return status
	}
	fields := map[string]bool{}
	for _, step := range []struct {
		field  string
		change func(*config.Config)
		before func() // what must wait for the change
		after  func()
	}{
		{"log.level", func(c *config.Config) { c.Log.Level = "error" }, nil, func() {
			if level.Level() != slog.LevelError {
				t.Errorf("the level is %v", level)
			}
		}},
		{"http.token", func(c *config.Config) { c.HTTP.Token = "one" },
			func() {
				eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
				if without := answered(""); without != 200 {
					t.Errorf("no token is asked for: %d", without)
				}
			}, func() {
				if without, with := answered(""), answered("one"); without != 401 || with != 200 {
					t.Errorf("a token that is asked for now: %d without it, %d with it", without, with)
				}
			}},
		{"http.tokens", func(c *config.Config) {
			c.HTTP.Token = ""
			c.HTTP.Tokens = []config.Bearer{{Name: "b", Token: "two", Scopes: config.List{config.ScopeAdmin}}}
		}, nil, func() {
			if former, with := answered("one"), answered("two"); former != 401 || with != 200 {
				t.Errorf("%d with the former token, %d with the one in its place", former, with)
			}
		}},
		{"window.time", func(c *config.Config) { c.Window.Time = 20 * time.Millisecond }, func() { node("a", "first") },
			func() { committed(0) }},
		{"window.changes", func(c *config.Config) { c.Window.Time, c.Window.Changes = time.Hour, 1 }, nil,
			func() { before := manifests(); node("a", "second"); committed(before) }},
		{"window.bytes", func(c *config.Config) {
			c.Window.Changes, c.Window.Bytes = 1<<30, c.Ingest.Limits.RecordBytes
		}, nil, func() {
			before := manifests()
			for range 6 {
				node("a", strings.Repeat("long ", 40_000))
			}
			committed(before)
		}},
		{"ingest.limits.text_bytes", func(c *config.Config) { c.Ingest.Limits.TextBytes = 100 }, nil,
			func() { node("a", strings.Repeat("long ", 100)); refused(decode.TextTooLarge) }},
		{"ingest.limits.edges_per_record", func(c *config.Config) { c.Ingest.Limits.EdgesPerRecord = 1 }, nil, func() {
			produce(t, s, cfg.Kafka.Topics.Edges, map[string]any{"a": map[string]any{"src": "a", "dst": []string{"b", "c"}}})
			refused(decode.TooManyEdges)
		}},
		{"ingest.max_future", func(c *config.Config) { c.Ingest.MaxFuture = time.Minute }, nil, func() {
			p := s.Client().NewProducer()
			defer p.Close()
			if err := p.Send(ctx, kafka.Message{Topic: cfg.Kafka.Topics.Nodes, Key: []byte("a"),
				Value: []byte(`{"id":"a"}`), Time: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			if err := p.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			refused(decode.FutureTime)
		}},
		{"ingest.min_filled", func(c *config.Config) { c.Ingest.MinFilled = 0.5 }, nil, func() {
			if got := s.settings.Get().Ingest.MinFilled; got != 0.5 { // watchFields reads it at each tick
				t.Errorf("min_filled is %v", got)
			}
		}},
		{"refresh.min_nodes", func(c *config.Config) { c.Refresh.MinNodes = 1 }, func() {
			produceGraph(t, s, cfg)
			if err := s.Drain(ctx); err != nil {
				t.Fatal(err)
			}
			if why := due(); why != "" {
				t.Errorf("due before: %s", why)
			}
		}, func() {
			if why := due(); !strings.Contains(why, "no generation yet") {
				t.Errorf("due %q", why)
			}
			newest()
		}},
		{"refresh.min_changes", func(c *config.Config) { c.Refresh.MinChanges = 1 }, func() {
			node(nodeID(0), "changed")
			if err := s.Drain(ctx); err != nil {
				t.Fatal(err)
			}
			if why := due(); why != "" {
				t.Errorf("due before: %s", why)
			}
		}, func() {
			if why := due(); !strings.Contains(why, "rows changed") {
				t.Errorf("due %q", why)
			}
		}},
		{"refresh.max_age", func(c *config.Config) { c.Refresh.MinChanges, c.Refresh.MaxAge = 1<<30, time.Second }, nil,
			func() { eventually(t, "it is old", func() bool { return strings.Contains(due(), " old") }) }},
		{"refresh.keep", func(c *config.Config) { c.Refresh.Keep = 1 }, nil, func() {
			newest()
			if numbers, err := generation.Numbers(ctx, s.store); err != nil || len(numbers) != 1 {
				t.Errorf("generations %v, %v", numbers, err)
			}
		}},
		{"refresh.quality_gate", func(c *config.Config) { c.Refresh.QualityGate = "off" }, nil, func() {
			node(nodeID(1), "changed")
			if doc := newest(); doc.QualityGate != generation.GateOff {
				t.Errorf("the gate was %q", doc.QualityGate)
			}
		}},
		{"refresh.space", func(c *config.Config) { c.Refresh.Space = "new" }, nil, func() {
			node(nodeID(2), "changed")
			if doc := newest(); doc.SpaceOf() != doc.Generation {
				t.Errorf("generation %d is in the space of %d", doc.Generation, doc.SpaceOf())
			}
		}},
		// The first measure that asks for a generation is the one that is told.
		{"refresh.drift.min_changes", func(c *config.Config) { c.Refresh.Drift.MinChanges = 11 },
			func() { asks("unknown n-grams") }, func() {
				if why := drifted(); why != "" {
					t.Errorf("due before there are enough changes: %q", why)
				}
			}},
		{"refresh.drift.unknown_ngrams",
			func(c *config.Config) { c.Refresh.Drift.MinChanges, c.Refresh.Drift.UnknownNGrams = 0.01, 0.9 }, nil,
			func() { asks("fit of new labels") }},
		{"refresh.drift.label_fit", func(c *config.Config) { c.Refresh.Drift.LabelFit = 1.5 }, nil,
			func() { asks("AUC of fresh edges") }},
		{"refresh.drift.link_auc", func(c *config.Config) { c.Refresh.Drift.LinkAUC = 0.9 }, nil,
			func() { asks("cosine of changed texts") }},
		{"refresh.drift.cosine", func(c *config.Config) { c.Refresh.Drift.Cosine = 1.5 }, nil, func() {
			if why := drifted(); why != "" {
				t.Errorf("still due because of %q", why)
			}
		}},
	} {
		fields[step.field] = true
		if step.before != nil {
			step.before()
		}
		next := *s.settings.Get()
		step.change(&next)
		if _, err := s.settings.Change(&next, "test"); err != nil {
			t.Fatal(err)
		}
		step.after()
	}
	for _, f := range cfg.Fields() {
		if (f.Effect == config.Live) != fields[f.Path] {
			t.Errorf("%s has the effect %s; a step of this test: %v", f.Path, f.Effect, fields[f.Path])
		}
	}
}

// A change happens whole or not at all, whoever asks for it, and the answer and the log say what changed.
func TestPutConfig(t *testing.T) {
	var log lockedBuffer
	s, cfg := startService(t, Options{Store: &memstore.Store{}, Log: slog.New(slog.NewJSONHandler(&log, nil))}, listen(t),
		func(c *config.Config) { c.HTTP.Token = "s3cret" })
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	put := func(body, token string) (int, string) {
		t.Helper()
		return send(t, cfg, http.MethodPut, body, token, "")
	}
	for _, c := range []struct {
		body string
		code int
		say  string
	}{
		{`{"window": {"time": "3s", "changes": 9}, "shards": 3}`, 409, "it decides what the store holds"},
		{"window: {time: 3s}\nhttp: {listen: ''}", 409, "it needs a restart"},
		{"window: {time: 3s}\ntrain: {encoder: bag}", 409, "giantstream rebuild"},
		{"window: {time: 3s, changes: 0}", 422, "must be at least 1"},
		{"window: {time: 3s, chagnes: 1}", 422, "unknown field"},
		{"window: {time: 3s}\nlog: {level: debug}", 409, "--log-level"}, // s.level is nil
		{"window: {time: 3s}\n" + strings.Repeat("#", 1<<20), 413, "too large"},
	} {
		if code, body := put(c.body, "s3cret"); code != c.code || !strings.Contains(body, c.say) {
			t.Errorf("%.60s: %d %s, want %d and %q", c.body, code, body, c.code, c.say)
		}
	}
	if got := s.settings.Get().Window; got != cfg.Window {
		t.Fatalf("refused changes left %+v", got)
	}
	if code, _ := put("window: {time: 3s}", ""); code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", code)
	}
	code, body := put("window: {time: 3s}\nrefresh: {keep: 5}", "s3cret")
	var answer struct{ Changes []config.Change }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != 200 || len(answer.Changes) != 2 ||
		answer.Changes[0] != (config.Change{Path: "window.time", From: "100ms", To: "3s", Effect: config.Live}) {
		t.Errorf("%d %s, %v", code, body, err)
	}
	for _, say := range []string{`"msg":"configuration changed"`, `"field":"window.time","from":"100ms","to":"3s"`,
		`"field":"refresh.keep","from":"3","to":"5"`, "PUT /config from 127.0.0.1:"} {
		if !strings.Contains(log.String(), say) {
			t.Errorf("no %s in the log\n%s", say, log.String())
		}
	}
	code, body = send(t, cfg, http.MethodGet, "", "s3cret", "")
	var fields []config.Field
	if err := json.Unmarshal([]byte(body), &fields); err != nil || code != 200 || strings.Contains(body, "s3cret") {
		t.Fatalf("%d %s, %v", code, body, err)
	}
	shown := map[string]string{}
	for _, f := range fields {
		shown[f.Path] = f.Value
	}
	if shown["window.time"] != "3s" || shown["http.token"] != "***" || len(fields) != len(cfg.Fields()) {
		t.Errorf("%v", shown)
	}
	if cfg.Window.Time != 100*time.Millisecond {
		t.Error("the configuration of the start was written to")
	}
}

// Without a token, only this machine may ask, under its own name: a browser that another site has sent here names
// that site.
func TestConfigWithoutATokenIsForThisMachine(t *testing.T) {
	_, cfg := testService(t, &memstore.Store{}, listen(t))
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	for host, want := range map[string]int{"": 200, "localhost:9464": 200, "127.0.0.1": 200, "[::1]:1": 200,
		"evil.example:9464": 403, "127.0.0.1.evil.example": 403} {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			if code, body := send(t, cfg, method, "refresh: {keep: 4}", "", host); code != want {
				t.Errorf("%s as %q: %d %s, want %d", method, host, code, body, want)
			}
		}
	}
}

// Reload takes what its reader returns, and an error changes nothing.
func TestReload(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{})
	if err := s.Reload("test"); err == nil {
		t.Error("reloaded without a file")
	}
	next, failure := *cfg, error(nil)
	s.settings.Read = func() (*config.Config, error) { return &next, failure }
	next.Refresh.Keep = 7
	if err := s.Reload("test"); err != nil || s.settings.Get().Refresh.Keep != 7 {
		t.Errorf("keep %d, %v", s.settings.Get().Refresh.Keep, err)
	}
	next.Refresh.Keep, failure = 8, context.DeadlineExceeded
	if err := s.Reload("test"); err == nil || s.settings.Get().Refresh.Keep == 8 {
		t.Error("a configuration was taken although it could not be read")
	}
	// Many at once, beside readers: the race detector looks on.
	failure = nil
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			one := *cfg
			one.Window.Changes = 100 + i
			if _, err := s.settings.Change(&one, "test"); err != nil {
				t.Error(err)
			}
			_ = s.settings.Get().Window
		})
	}
	all.Wait()
}

// send asks for /config, as a host if one is given.
func send(t *testing.T, cfg *config.Config, method, body, token, host string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+cfg.HTTP.Listen+"/config", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	answer := do(t, req, token)
	return answer.status, answer.body
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
