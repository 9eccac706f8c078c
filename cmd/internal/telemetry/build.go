package telemetry

import (
	"context"

	"giantstream/internal/ambient"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Build is the trace of a generation's build. Every build has one.
type Build struct {
	ambient.Progress
	tracer trace.Tracer
	ctx    context.Context //nolint:containedctx // of the build: Progress knows none
	span   trace.Span
	stage  trace.Span
}

// Build begins the trace of a build. It returns the context and the progress for the build, whose stages are spans. The
// Build is nil if nothing is traced.
func (t *Traces) Build(ctx context.Context, next ambient.Progress, because string) (context.Context, ambient.Progress,
	*Build) {
	if t == nil {
		return ctx, next, nil
	}
	b := &Build{Progress: ambient.OrDiscard(next), tracer: t.tracer}
	b.ctx, b.span = t.tracer.Start(ctx, "build generation", trace.WithNewRoot(), trace.WithAttributes(
		attribute.String("giantstream.because", because)))
	return b.ctx, b, b
}

// Stage implements ambient.Progress.
func (b *Build) Stage(name string, total int64) {
	if b.stage != nil {
		b.stage.End()
	}
	_, b.stage = b.tracer.Start(b.ctx, name)
	if total > 0 {
		b.stage.SetAttributes(attribute.Int64("giantstream.units", total))
	}
	b.Progress.Stage(name, total)
}

// Note passes words on.
func (b *Build) Note(words string) { ambient.Note(b.Progress, words) }

// Built notes the generation that was built, and what it is of.
func (b *Build) Built(generation int64, encoder string, nodes int, status string) {
	if b != nil {
		b.span.SetAttributes(attribute.Int64("giantstream.generation", generation),
			attribute.String("giantstream.encoder", encoder), attribute.Int("giantstream.nodes", nodes),
			attribute.String("giantstream.status", status))
	}
}

// End ends the trace.
func (b *Build) End(err error) {
	if b == nil {
		return
	}
	if b.stage != nil {
		end(b.stage, err)
	}
	end(b.span, err)
}
