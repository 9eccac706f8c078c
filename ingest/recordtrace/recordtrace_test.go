package recordtrace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"giantstream/ingest/recordtrace"
)

const (
	parent    = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	traceID   = "4bf92f3577b34da6a3ce929d0e0e4736"
)

func tracer(tb testing.TB, ratio, drawn float64, heedless bool) (*recordtrace.Tracer, *tracetest.SpanRecorder) {
	tb.Helper()
	spans := tracetest.NewSpanRecorder()
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	return &recordtrace.Tracer{Spans: p.Tracer(""), Ratio: ratio, Heedless: heedless,
		Draw: func() float64 { return drawn }}, spans
}

func TestWhichRecordsAreFollowed(t *testing.T) {
	now := time.UnixMilli(5_000)
	for name, c := range map[string]struct {
		header        string
		ratio, drawn  float64
		heedless      bool
		follows, same bool // and whether in the producer's trace
	}{
		"no header, no ratio":          {},
		"no header, drawn":             {ratio: 0.1, drawn: 0.05, follows: true},
		"no header, not drawn":         {ratio: 0.1, drawn: 0.1},
		"the producer's":               {header: parent, follows: true, same: true},
		"the producer has not sampled": {header: unsampled, ratio: 1},
		"a header that is none":        {header: "00-zz-01"},
		"another header, drawn":        {header: strings.Replace(parent, "4b", "zz", 1), ratio: 1, follows: true},
		"heedless, not drawn":          {header: parent, heedless: true, ratio: 0.1, drawn: 0.5},
		"heedless, drawn":              {header: unsampled, heedless: true, ratio: 0.1, follows: true, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			tr, spans := tracer(t, c.ratio, c.drawn, c.heedless)
			m := kafka.Message{Topic: "nodes", Key: []byte("a"), Time: now.Add(-time.Second)}
			if c.header != "" {
				m.Headers = []kafka.Header{{Key: "traceparent", Value: []byte(c.header)}}
			}
			r := tr.Begin(&m, now.Add(-time.Minute), now)
			if (r != nil) != c.follows {
				t.Fatalf("followed: %t, want %t", r != nil, c.follows)
			}
			if r == nil {
				return
			}
			if r.Decoded(nil) {
				t.Error("a record that says nothing is followed further")
			}
			ended := spans.Ended()
			if len(ended) != 3 {
				t.Fatalf("%d spans, want receive, decode and process", len(ended))
			}
			if got := ended[2].SpanContext().TraceID().String(); (got == traceID) != c.same {
				t.Errorf("the trace is %s", got)
			}
			if at := ended[2].StartTime(); !at.Equal(m.Time) {
				t.Errorf("the span begins at %v, want the record's time: the broker has waited for it until then", at)
			}
			if passed := recordtrace.Context(r.Headers()); passed.SpanID() != r.Span.SpanContext().SpanID() {
				t.Errorf("the headers name span %v", passed.SpanID())
			}
		})
	}
}

// Of records that are not followed nothing is paid for but a look at their headers.
func TestRecordsThatAreNotFollowedAllocateNothing(t *testing.T) {
	tr, _ := tracer(t, 0.001, 0.5, false)
	for name, m := range map[string]*kafka.Message{
		"no header": {Topic: "nodes"},
		"unsampled": {Topic: "nodes", Headers: []kafka.Header{{Key: "traceparent", Value: []byte(unsampled)}}},
	} {
		now := time.Now()
		if n := testing.AllocsPerRun(100, func() { tr.Begin(m, now, now) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkBegin(b *testing.B) {
	now := time.Now()
	for name, m := range map[string]*kafka.Message{
		"without header":  {Topic: "nodes"},
		"not sampled":     {Topic: "nodes", Headers: []kafka.Header{{Key: "traceparent", Value: []byte(unsampled)}}},
		"sampled, traced": {Topic: "nodes", Headers: []kafka.Header{{Key: "traceparent", Value: []byte(parent)}}},
	} {
		b.Run(name, func(b *testing.B) {
			p := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()))
			tr := &recordtrace.Tracer{Spans: p.Tracer(""), Ratio: 0.001, Draw: func() float64 { return 0.5 }}
			b.ReportAllocs()
			for b.Loop() {
				if r := tr.Begin(m, now, now); r != nil {
					r.Decoded(nil)
				}
			}
		})
	}
}
