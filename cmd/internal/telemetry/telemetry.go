package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"giantstream/ingest/recordtrace"
)

// Options of Traces.
type Options struct {
	// Ratio is the share of records without a traceparent that begin a trace. OTEL_TRACES_SAMPLER, if set, counts
	// instead.
	Ratio float64
	// Version of the program, Pipeline and Instance (this process) are in every trace.
	Version, Pipeline, Instance string
	Log                         *slog.Logger
	// Exporter takes the spans. nil: they are sent by OTLP over HTTP, as the OTEL_* variables say.
	Exporter sdktrace.SpanExporter
}

// Traces are those of a process. Methods may be called on nil, which traces nothing.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	records  recordtrace.Tracer
}

// Start returns nil if nobody has asked for traces: neither a ratio nor an endpoint is set.
func Start(ctx context.Context, o Options) (*Traces, error) {
	on, err := asked(o.Ratio)
	if err != nil || !on {
		return nil, err
	}
	ratio, heedless, err := sampling(o.Ratio)
	if err != nil {
		return nil, err
	}
	if err := checkEnvironment(); err != nil {
		return nil, err
	}
	if o.Exporter == nil {
		sender, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("traces: %w; see the OTEL_EXPORTER_OTLP_ variables", err)
		}
		o.Exporter = sender
	}
	// What the environment says comes last and wins.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "giantstream"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Instance), attribute.String("giantstream.pipeline", o.Pipeline)),
		resource.WithFromEnv())
	if err != nil {
		// The library's error has the value in it.
		return nil, errors.New("traces: OTEL_RESOURCE_ATTRIBUTES must be key=value, with commas between them")
	}
	t := &Traces{provider: sdktrace.NewTracerProvider(sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // recordtrace has decided
		sdktrace.WithBatcher(&exporter{SpanExporter: o.Exporter, log: o.Log}))}
	t.tracer = t.provider.Tracer("giantstream", trace.WithInstrumentationVersion(o.Version))
	t.records = recordtrace.Tracer{Spans: t.tracer, Ratio: ratio, Heedless: heedless, Draw: rand.Float64}
	return t, nil
}

// Records decides which records are followed, nil for none.
func (t *Traces) Records() *recordtrace.Tracer {
	if t == nil {
		return nil
	}
	return &t.records
}

// closeTime bounds how long Close waits for the collector.
const closeTime = 5 * time.Second

// Close sends what is left.
func (t *Traces) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("close the exporter of traces: %w", err)
	}
	return nil // the exporter has logged what was not sent
}

// exporter logs when spans cannot be sent, and when they can again. The process does not depend on a collector.
type exporter struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if before := e.failed.Swap(err != nil); err != nil && !before {
		e.log.Warn("traces cannot be sent; they are dropped until the collector answers", "error", err)
	} else if err == nil && before {
		e.log.Info("traces are sent again")
	}
	return nil // and nobody logs it a second time
}
