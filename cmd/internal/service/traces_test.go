package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/recordtrace"
	"giantstream/internal/canary"
	"giantstream/sink/memstore"
)

// A record of a producer that traces is followed from its fetch to the embeddings that it changes, in its own shard and
// in that of the far end, and to its dead letter.
func TestTheTraceOfARecordReachesItsEmbeddings(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // milliseconds
	spans := tracetest.NewInMemoryExporter()
	secrets := map[string]string{} // every one, by its field
	s, cfg := startService(t, Options{Store: &memstore.Store{}, Log: slog.New(slog.DiscardHandler), spans: spans},
		func(c *config.Config) {
			c.Telemetry.Traces.Exemplars = true
			c.EachField(func(path string, v reflect.Value, _ config.Effect) {
				if v.Type() == reflect.TypeFor[config.Secret]() && path != "http.token" { // which the test's requests lack
					secrets[path] = canary.New(len(secrets))
					v.SetString(secrets[path])
				}
			})
		})
	if len(secrets) < 5 {
		t.Fatalf("%d fields are secrets", len(secrets))
	}
	produceGraph(t, s, cfg)
	go func() { _ = s.Run(t.Context()) }()
	eventually(t, "every node has an embedding", func() bool { return len(sinkTopic(t, s, cfg)) == nodes })
	if names := namesOf(spans, ""); !slices.Contains(names, "build generation") ||
		!slices.Contains(names, "pifa") || slices.Contains(names, "process nodes") {
		t.Errorf("spans before a record with a traceparent: %q, want those of a build alone", names)
	}

	trace := func(n int) string { return fmt.Sprintf("%032x", n) }
	send := func(n int, topic, key string, value any) {
		t.Helper()
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		p := s.Client().NewProducer()
		defer p.Close()
		if err := p.Write(t.Context(), kafka.Message{Topic: topic, Key: []byte(key), Value: data, Time: time.Now(),
			Headers: []kafka.Header{{Key: recordtrace.Parent,
				Value: fmt.Appendf(nil, "00-%s-00f067aa0ba902b7-01", trace(n))}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	const word = "unmistakable"
	send(1, cfg.Kafka.Topics.Nodes, nodeID(0), map[string]any{"id": nodeID(0), "text": text(0, 1) + " " + word})
	far := 1
	for client.Partition([]byte(nodeID(far)), cfg.Shards) == client.Partition([]byte(nodeID(2)), cfg.Shards) {
		far++
	}
	send(2, cfg.Kafka.Topics.Edges, nodeID(2), map[string]any{"src": nodeID(2), "dst": nodeID(far)})
	send(3, cfg.Kafka.Topics.Nodes, nodeID(3), "no object")

	for id, n := range map[string]int{nodeID(0): 1, nodeID(2): 2, nodeID(far): 2} {
		eventually(t, "the embedding of "+id+" continues the trace", func() bool {
			return newestTrace(t, s, cfg.Kafka.Topics.Embeddings, id) == trace(n)
		})
	}
	eventually(t, "the dead letter continues the trace", func() bool {
		return newestTrace(t, s, cfg.DeadLetters(), nodeID(3)) == trace(3)
	})
	publish := "publish " + cfg.Kafka.Topics.Embeddings
	want := []string{"process nodes", "receive nodes", "decode", "apply", "commit", "manifest", publish, "encode",
		"send", "rows", "store put", "store create"}
	for n, names := range map[int][]string{1: want,
		2: {"process edges", "process " + cfg.Mirror(), "commit", publish}, 3: {"process nodes", "receive nodes"}} {
		var got []string
		eventually(t, fmt.Sprintf("trace %d is whole: %q", n, names), func() bool {
			got = namesOf(spans, trace(n))
			return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(got, name) })
		})
	}
	for _, span := range spans.GetSpans() {
		said := fmt.Sprint(span.Name, span.Attributes, span.Status, span.Events, span.Links, span.Resource.Attributes())
		if strings.Contains(said, word) {
			t.Errorf("a span holds a text: %s", said)
		}
		for path, secret := range secrets {
			if how := canary.Find(said, secret); how != "" {
				t.Errorf("a span holds %s %s: %s", path, how, said)
			}
		}
	}
	if named := scrape(t, s); !strings.Contains(named, trace(1)) && !strings.Contains(named, trace(2)) {
		t.Error("no bucket of the freshness names a trace")
	}
}

// What the exporter sends to a collector, with its headers, has no secret in it, whatever the library puts beside our
// spans.
func TestTracesOnTheWireHaveNoSecrets(t *testing.T) {
	var mu sync.Mutex
	var sent bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = r.Header.Write(&sent)
		_, _ = io.Copy(&sent, r.Body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // milliseconds
	secrets := map[string]string{}
	s, cfg := startService(t, Options{Store: &memstore.Store{}, Log: slog.New(slog.DiscardHandler)},
		func(c *config.Config) {
			c.Telemetry.Traces.Ratio = 1
			c.EachField(func(path string, v reflect.Value, _ config.Effect) {
				if v.Type() == reflect.TypeFor[config.Secret]() {
					secrets[path] = canary.New(len(secrets))
					v.SetString(secrets[path])
				}
			})
		})
	produceGraph(t, s, cfg)
	go func() { _ = s.Run(t.Context()) }()
	got := func(name string) bool {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Contains(sent.Bytes(), []byte(name))
	}
	for _, name := range []string{"process nodes", "build generation", "store create", "publish "} {
		eventually(t, name+" has been sent", func() bool { return got(name) })
	}
	mu.Lock()
	defer mu.Unlock()
	for path, secret := range secrets {
		if how := canary.Find(sent.String(), secret); how != "" {
			t.Errorf("the collector gets %s %s", path, how)
		}
	}
}

// namesOf returns the names of the spans that have ended, of one trace or of all.
func namesOf(spans *tracetest.InMemoryExporter, trace string) (names []string) {
	for _, s := range spans.GetSpans() {
		if trace == "" || s.SpanContext.TraceID().String() == trace {
			names = append(names, s.Name)
		}
	}
	return names
}

// newestTrace returns the trace that the newest record with a key belongs to.
func newestTrace(t *testing.T, s *Service, topic, key string) (trace string) {
	t.Helper()
	for _, m := range recordsOf(t, s, topic) {
		if string(m.Key) == key {
			trace = recordtrace.Context(m.Headers).TraceID().String()
		}
	}
	return trace
}

// scrape returns the exemplars of the freshness.
func scrape(t *testing.T, s *Service) string {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, b := range m.GetHistogram().GetBucket() {
				for _, l := range b.GetExemplar().GetLabel() {
					fmt.Fprintf(&out, "%s=%q\n", l.GetName(), l.GetValue())
				}
			}
		}
	}
	return out.String()
}
