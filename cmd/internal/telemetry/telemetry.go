package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
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
		return nil, fmt.Errorf("traces: %w; see OTEL_RESOURCE_ATTRIBUTES", err)
	}
	t := &Traces{provider: sdktrace.NewTracerProvider(sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // recordtrace has decided
		sdktrace.WithBatcher(&exporter{SpanExporter: o.Exporter, log: o.Log}))}
	t.tracer = t.provider.Tracer("giantstream", trace.WithInstrumentationVersion(o.Version))
	t.records = recordtrace.Tracer{Spans: t.tracer, Ratio: ratio, Heedless: heedless, Draw: rand.Float64}
	return t, nil
}

// asked reports whether traces are to be sent.
func asked(ratio float64) (bool, error) {
	if disabled, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); disabled {
		return false, nil
	}
	to := os.Getenv("OTEL_TRACES_EXPORTER")
	switch to {
	case "none":
		return false, nil
	case "", "otlp":
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: giantstream sends otlp, or none", to)
	}
	if ratio == 0 && to == "" && os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" &&
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return false, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch p := os.Getenv(name); p {
		case "":
		case "http/protobuf":
			return true, nil
		default:
			return false, fmt.Errorf("%s is %q: giantstream sends http/protobuf, for which collectors listen on "+
				"port 4318", name, p)
		}
	}
	return true, nil
}

// sampling returns what OTEL_TRACES_SAMPLER says, or else the ratio of the configuration. heedless: whatever the
// producer of a record has decided.
func sampling(configured float64) (ratio float64, heedless bool, err error) {
	name := os.Getenv("OTEL_TRACES_SAMPLER")
	kind, parents := strings.CutPrefix(name, "parentbased_")
	switch kind {
	case "":
		return configured, false, nil
	case "always_on":
		return 1, !parents, nil
	case "always_off":
		return 0, !parents, nil
	case "traceidratio":
		ratio = 1
		if arg := os.Getenv("OTEL_TRACES_SAMPLER_ARG"); arg != "" {
			ratio, err = strconv.ParseFloat(arg, 64)
			if err != nil || !(ratio >= 0 && ratio <= 1) {
				return 0, false, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q: it must be a share between 0 and 1", arg)
			}
		}
		return ratio, !parents, nil
	}
	return 0, false, fmt.Errorf("OTEL_TRACES_SAMPLER is %q: giantstream knows always_on, always_off, traceidratio, "+
		"and these after parentbased_", name)
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
