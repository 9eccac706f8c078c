package telemetry

import (
	"context"
	"io"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"giantstream/sink"
)

// Store returns a store whose writes are spans of what they are a part of, if that is traced.
func (t *Traces) Store(s sink.Store) sink.Store {
	if t == nil {
		return s
	}
	return &store{s, t.tracer}
}

type store struct {
	sink.Store
	tracer trace.Tracer
}

var (
	_ sink.Fetcher  = (*store)(nil)
	_ sink.Replacer = (*store)(nil)
)

// request begins the span of a request, if ctx is traced.
func (s *store) request(ctx context.Context, op, key string, bytes int64) (context.Context, func(error)) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := s.tracer.Start(ctx, "store "+op, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("giantstream.store.key", key), attribute.Int64("giantstream.store.bytes", bytes)))
	return ctx, func(err error) { end(span, err) }
}

// Put implements sink.Store.
func (s *store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	ctx, done := s.request(ctx, "put", key, size)
	err := s.Store.Put(ctx, key, r, size)
	done(err)
	return err
}

// Create implements sink.Store.
func (s *store) Create(ctx context.Context, key string, data []byte) error {
	ctx, done := s.request(ctx, "create", key, int64(len(data)))
	err := s.Store.Create(ctx, key, data)
	done(err)
	return err
}

// Replace implements sink.Replacer, if the store does.
func (s *store) Replace(ctx context.Context, key string, old, data []byte) error {
	swap, ok := s.Store.(sink.Replacer)
	if !ok {
		return &sink.Error{Op: "replace", Key: key, Err: sink.ErrUnsupported}
	}
	ctx, done := s.request(ctx, "replace", key, int64(len(data)))
	err := swap.Replace(ctx, key, old, data)
	done(err)
	return err
}

// Fetch implements sink.Fetcher, also over a store that does not.
func (s *store) Fetch(ctx context.Context, key string, most int64) ([]byte, error) {
	return sink.ReadUpTo(ctx, s.Store, key, most)
}

func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
