package recordtrace

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"giantstream/stream/mutation"
)

// The headers of W3C Trace Context.
const (
	Parent = "traceparent"
	State  = "tracestate"
)

// Tracer decides which records are followed. It is safe for concurrent use.
type Tracer struct {
	// Spans makes the spans. It records all that are begun: the decision is made here.
	Spans trace.Tracer
	// Ratio is the share of records without a traceparent that begin a trace.
	Ratio float64
	// Draw returns numbers in [0, 1).
	Draw func() float64
	// Heedless: a record with a traceparent is drawn like any other, whatever its producer has decided.
	Heedless bool
}

// Record is a record that is followed.
type Record struct {
	// Span lasts from the fetch until the record is committed or is a dead letter.
	Span trace.Span
	// Version is the one of the record's mutations.
	Version mutation.Version
	// IDs are the nodes that own the mutations.
	IDs []string

	tracer *Tracer
	began  time.Time // to be decoded
}

// Begin begins the span of a record, or returns nil if the record is not followed. asked is when the broker was asked
// for it, arrived when it came. While the broker waited for it, it was not there: the span begins with the record's own
// time, if that lies between the two.
func (t *Tracer) Begin(m *kafka.Message, asked, arrived time.Time) *Record {
	ctx := context.Background()
	given := value(m.Headers, Parent)
	if given != nil {
		if !t.Heedless && !sampled(given) {
			return nil
		}
		ctx = propagation.TraceContext{}.Extract(ctx, carrier{&m.Headers})
	}
	drawn := t.Heedless || !trace.SpanContextFromContext(ctx).IsValid()
	if drawn && (t.Ratio <= 0 || t.Draw() >= t.Ratio) {
		return nil
	}
	from := asked
	if m.Time.After(from) {
		from = m.Time
	}
	if from.After(arrived) {
		from = arrived
	}
	ctx, span := t.Spans.Start(ctx, "process "+m.Topic, trace.WithTimestamp(from),
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attribute.String("messaging.system", "kafka"),
			attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.operation.name", "process"),
			attribute.String("messaging.destination.name", m.Topic),
			attribute.Int("messaging.destination.partition.id", m.Partition),
			attribute.Int64("messaging.kafka.offset", m.Offset),
			attribute.String("messaging.kafka.message.key", keyOf(m.Key)),
			attribute.Int("messaging.message.body.size", len(m.Value))))
	_, fetch := t.Spans.Start(ctx, "receive "+m.Topic, trace.WithTimestamp(from))
	fetch.End(trace.WithTimestamp(arrived))
	return &Record{Span: span, tracer: t, began: time.Now()}
}

// Decoded notes what the record says, and ends the span of a record that says nothing. It reports whether the record is
// followed further.
func (r *Record) Decoded(said []mutation.Mutation) bool {
	_, span := r.tracer.Spans.Start(trace.ContextWithSpan(context.Background(), r.Span), "decode",
		trace.WithTimestamp(r.began), trace.WithAttributes(attribute.Int("giantstream.mutations", len(said))))
	span.End()
	for i := range said {
		r.Version = said[i].Version
		if n := len(r.IDs); n == 0 || r.IDs[n-1] != said[i].ID {
			r.IDs = append(r.IDs, said[i].ID)
		}
	}
	if len(said) == 0 {
		r.Span.End()
	}
	return len(said) > 0
}

// Refused notes that the record is a dead letter, or a part of it. The letter's message may quote the record, so it is
// not in the span.
func (r *Record) Refused(code string) {
	r.Span.SetAttributes(attribute.String("giantstream.dead_letter.code", code))
	r.Span.SetStatus(codes.Error, "dead letter")
}

// Failed ends the span of a record that will be read again.
func (r *Record) Failed(err error) {
	r.Span.SetStatus(codes.Error, err.Error())
	r.Span.End()
}

// Headers returns those that continue the record's trace.
func (r *Record) Headers() []kafka.Header { return Headers(r.Span.SpanContext()) }

// Headers returns those that continue the trace of a span.
func Headers(span trace.SpanContext) []kafka.Header {
	var h []kafka.Header
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), span), carrier{&h})
	return h
}

// Given returns the headers of Trace Context among those of a record. A process that traces
// nothing may pass them on unchanged.
func Given(headers []kafka.Header) (given []kafka.Header) {
	for _, h := range headers {
		if h.Key == Parent || h.Key == State {
			given = append(given, h)
		}
	}
	return given
}

// Context returns the span that a record's headers name; it is not valid if they name none.
func Context(headers []kafka.Header) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier{&headers})
	return trace.SpanContextFromContext(ctx)
}

// value returns the value of the first header with a name, nil for none.
func value(headers []kafka.Header, name string) []byte {
	for i := range headers {
		if headers[i].Key == name {
			return headers[i].Value
		}
	}
	return nil
}

// sampled reads the flag of a traceparent: version, trace, span and flags in hexadecimal digits, with dashes.
func sampled(parent []byte) bool {
	const flagsAt = 2 + 1 + 32 + 1 + 16 + 1
	if len(parent) < flagsAt+2 {
		return false
	}
	switch c := parent[flagsAt+1]; c {
	case '1', '3', '5', '7', '9', 'b', 'd', 'f':
		return true
	}
	return false
}

// maxKey bounds the key of a record in its span.
const maxKey = 256

func keyOf(key []byte) string { return string(key[:min(len(key), maxKey)]) }

// carrier lets OpenTelemetry read and write headers.
type carrier struct{ headers *[]kafka.Header }

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(name string) string { return string(value(*c.headers, name)) }

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(name, to string) {
	*c.headers = append(*c.headers, kafka.Header{Key: name, Value: []byte(to)})
}

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string {
	names := make([]string, len(*c.headers))
	for i, h := range *c.headers {
		names[i] = h.Key
	}
	return names
}
