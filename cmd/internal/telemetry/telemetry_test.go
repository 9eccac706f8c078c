package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"giantstream/cmd/internal/telemetry"
)

// receiver is a collector of traces on loopback.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []*collector.ExportTraceServiceRequest
	header http.Header
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body := io.Reader(q.Body)
		if q.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(q.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		data, err := io.ReadAll(body)
		var req collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(data, &req)
		}
		if err != nil || q.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", q.URL.Path, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got, r.header = append(r.got, &req), q.Header
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// follow traces one record.
func follow(t *testing.T, traces *telemetry.Traces) {
	t.Helper()
	now := time.Now()
	r := traces.Records().Begin(&kafka.Message{Topic: "nodes", Key: []byte("a"), Headers: []kafka.Header{{
		Key: "traceparent", Value: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}}}, now, now)
	if r == nil {
		t.Fatal("a sampled record is not followed")
	}
	r.Span.End()
}

func TestTracesAreSentByOTLPOverHTTP(t *testing.T) {
	r := startReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	traces, err := telemetry.Start(t.Context(), telemetry.Options{Version: "1.2.3", Pipeline: "catalog",
		Instance: "host/1", Log: slog.New(slog.DiscardHandler)})
	if err != nil || traces == nil {
		t.Fatalf("%v, %v", traces, err)
	}
	follow(t, traces)
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}
	if len(r.got) != 1 || r.header.Get("Authorization") != "Bearer s3cret" {
		t.Fatalf("%d requests, headers %v", len(r.got), r.header)
	}
	of := r.got[0].GetResourceSpans()[0]
	about := map[string]string{}
	for _, a := range of.GetResource().GetAttributes() {
		about[a.GetKey()] = a.GetValue().GetStringValue()
	}
	for key, want := range map[string]string{"service.name": "giantstream", "service.version": "1.2.3",
		"service.instance.id": "host/1", "giantstream.pipeline": "catalog", "deployment.environment.name": "test"} {
		if about[key] != want {
			t.Errorf("%s is %q, want %q", key, about[key], want)
		}
	}
	names := map[string]bool{}
	for _, span := range of.GetScopeSpans()[0].GetSpans() {
		names[span.GetName()] = true
	}
	if !names["process nodes"] || !names["receive nodes"] {
		t.Errorf("spans %v", names)
	}
	if strings.Contains(r.got[0].String(), "s3cret") {
		t.Error("the collector's token is in the spans")
	}
}

// The pipeline does not depend on a collector: what is not sent is lost, and one line of the log says so.
func TestACollectorThatRefuses(t *testing.T) {
	r := startReceiver(t)
	r.status = http.StatusBadRequest // no reason to try again
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", r.URL+"/v1/traces")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	var log bytes.Buffer
	traces, err := telemetry.Start(t.Context(), telemetry.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	follow(t, traces)
	follow(t, traces)
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "traces cannot be sent"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, &log)
	}
}

func TestWhenTracesAreSent(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		ratio float64
		on    bool
		fails string
	}{
		"by default":        {},
		"a ratio":           {ratio: 0.1, on: true},
		"an endpoint":       {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, on: true},
		"asked for by name": {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, on: true},
		"disabled":          {env: map[string]string{"OTEL_SDK_DISABLED": "true"}, ratio: 1},
		"no exporter":       {env: map[string]string{"OTEL_TRACES_EXPORTER": "none"}, ratio: 1},
		"another exporter":  {env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, fails: "sends otlp"},
		"gRPC": {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ratio: 1,
			fails: "port 4318"},
		"a sampler": {env: map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
			"OTEL_TRACES_SAMPLER_ARG": "0.5"}, ratio: 1, on: true},
		"a sampler's share": {env: map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio",
			"OTEL_TRACES_SAMPLER_ARG": "50"}, ratio: 1, fails: "between 0 and 1"},
		"another sampler": {env: map[string]string{"OTEL_TRACES_SAMPLER": "jaeger_remote"}, ratio: 1,
			fails: "parentbased_"},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			traces, err := telemetry.Start(t.Context(),
				telemetry.Options{Ratio: c.ratio, Log: slog.New(slog.DiscardHandler)})
			switch {
			case c.fails == "" && err != nil, c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Fatalf("error %v, want %q", err, c.fails)
			case (traces != nil) != c.on:
				t.Errorf("on: %t, want %t", traces != nil, c.on)
			}
			if err := traces.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
