package feed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/recordtrace"
)

// fetched are n node records of 600 bytes, with the traceparent of a producer that has not sampled them if asked for.
func fetched(n int, headers bool) client.Fetched {
	text := strings.Repeat("A pen that writes. ", 29)
	got := client.Fetched{Next: int64(n)}
	for i := range n {
		id := fmt.Sprint("node-", i)
		m := kafka.Message{Topic: "nodes", Key: []byte(id), Offset: int64(i),
			Value: fmt.Appendf(nil, `{"id":%q,"text":%q}`, id, text)}
		if headers {
			m.Headers = []kafka.Header{{Key: "traceparent",
				Value: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")}}
		}
		got.Records = append(got.Records, m)
	}
	return got
}

// sourceOf decodes nodes of one shard, and follows records as traces says.
func sourceOf(tb testing.TB, traces *recordtrace.Tracer) (*source, <-chan chunk) {
	tb.Helper()
	nodes, err := decode.Nodes(decode.NodeMapping{ID: "id", Text: []string{"text"}},
		decode.Limits{RecordBytes: 1 << 20, TextBytes: 256 << 10, EdgesPerRecord: 10_000}, 1)
	if err != nil {
		tb.Fatal(err)
	}
	chunks := make(chan chunk, 1)
	return &source{decoder: nodes, chunks: chunks, rebound: func() {}, traces: traces}, chunks
}

// unsampled follows no record that fetched makes.
func unsampled() *recordtrace.Tracer {
	p := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()))
	return &recordtrace.Tracer{Spans: p.Tracer(""), Ratio: 0.001, Draw: func() float64 { return 0.5 }}
}

// handleOnce decodes a fetch.
func handleOnce(tb testing.TB, s *source, chunks <-chan chunk, got client.Fetched) {
	tb.Helper()
	s.sent = -1
	if err := s.handle(tb.Context(), got); err != nil {
		tb.Fatal(err)
	}
	if c := <-chunks; len(c.mutations) != len(got.Records) || len(c.traced) > 0 {
		tb.Fatalf("%d mutations, %d traces, %d letters", len(c.mutations), len(c.traced), len(c.letters))
	}
}

// Whether traces are sent or not, records that are not followed allocate the same.
func TestTracesCostRecordsThatAreNotFollowedNothing(t *testing.T) {
	got := fetched(256, true)
	plain, read := sourceOf(t, nil)
	off := testing.AllocsPerRun(20, func() { handleOnce(t, plain, read, got) })
	traced, read := sourceOf(t, unsampled())
	if on := testing.AllocsPerRun(20, func() { handleOnce(t, traced, read, got) }); on > off {
		t.Errorf("%v allocations a fetch, %v without traces", on, off)
	}
}

func BenchmarkTraces(b *testing.B) {
	const n = 1000
	for _, c := range []struct {
		name    string
		traces  *recordtrace.Tracer
		headers bool
	}{{"off", nil, false}, {"no record sampled", unsampled(), false}, {"no producer has sampled", unsampled(), true}} {
		b.Run(c.name, func(b *testing.B) {
			got := fetched(n, c.headers)
			s, chunks := sourceOf(b, c.traces)
			b.ReportAllocs()
			for b.Loop() {
				handleOnce(b, s, chunks, got)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}
