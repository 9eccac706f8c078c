package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"giantstream/ingest/recordtrace"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

const (
	// windowRecords bounds the records of a window that are followed.
	windowRecords = 256
	// waitingNodes bounds the nodes whose embeddings are expected: before the first generation nobody publishes them.
	waitingNodes = 4096
)

// Steps of a shard that Step makes the spans of the records of a batch and of a window.
const (
	apply  = "apply"
	commit = "commit"
)

// Shard follows records through a shard. Methods may be called on nil, which follows none.
type Shard struct {
	tracer trace.Tracer
	number attribute.KeyValue
	topic  string // of embeddings, "" if this process publishes none

	mu     sync.Mutex
	batch  []*recordtrace.Record // being applied
	window []*recordtrace.Record // not committed yet
	stated map[statement]*recordtrace.Record
	commit spans
	// waiting are the committed records whose nodes' embeddings are not published, by node, and order the nodes, the
	// one that has waited longest first.
	waiting map[string][]committed
	order   []string

	// encoded is when the follower has encoded last, from and to.
	encoded [2]time.Time
}

// statement identifies a record of a shard in what it says: a topic, by its rank, and an offset.
type statement struct {
	rank   uint8
	offset int64
}

// committed is a record of the window with this number.
type committed struct {
	*recordtrace.Record
	seq int64
}

// Shard begins to follow the records of an opening of a shard. topic is where the process publishes embeddings, "" if
// it does not.
func (t *Traces) Shard(number int, topic string) *Shard {
	if t == nil {
		return nil
	}
	return &Shard{tracer: t.tracer, number: attribute.Int("giantstream.shard", number), topic: topic,
		stated: map[statement]*recordtrace.Record{}, waiting: map[string][]committed{}}
}

// Batch notes the records of the batch that the shard applies next.
func (s *Shard) Batch(records []*recordtrace.Record) {
	if s == nil || len(records) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	room := max(0, windowRecords-len(s.window))
	for _, r := range records[min(room, len(records)):] {
		r.Span.SetAttributes(attribute.Bool("giantstream.not_followed", true))
		r.Span.End()
	}
	s.batch = records[:min(room, len(records))]
	s.window = append(s.window, s.batch...)
	for _, r := range s.batch {
		s.stated[statement{r.Version.Rank, r.Version.Offset}] = r
	}
}

// Step is a shard's Options.Step.
func (s *Shard) Step(ctx context.Context, name string) (context.Context, func(error)) {
	if s == nil {
		return ctx, func(error) {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var records []*recordtrace.Record
	switch name {
	case apply:
		records, s.batch = s.batch, nil
	case commit:
		records = s.window
	default:
		if !trace.SpanFromContext(ctx).IsRecording() {
			return ctx, func(error) {}
		}
		ctx, span := s.tracer.Start(ctx, name)
		return ctx, func(err error) { end(span, err) }
	}
	if len(records) == 0 {
		return ctx, func(error) {}
	}
	ctx, together := s.startSpans(ctx, name, records)
	if name == commit {
		s.commit = together
	}
	return ctx, together.end
}

// spans are the spans of several records that one operation handles together.
type spans []trace.Span

// startSpans begins a span for each record, and returns the context of the first span.
func (s *Shard) startSpans(ctx context.Context, name string, records []*recordtrace.Record,
	options ...trace.SpanStartOption) (context.Context, spans) {
	all := make(spans, len(records))
	options = append(options, trace.WithAttributes(s.number))
	for i, r := range records {
		parent := trace.ContextWithSpan(ctx, r.Span)
		if i == 0 {
			ctx, all[0] = s.tracer.Start(parent, name, options...)
			all[0].SetAttributes(attribute.Int("giantstream.records_followed", len(records)))
			continue
		}
		_, all[i] = s.tracer.Start(parent, name, append(options[:len(options):len(options)],
			trace.WithLinks(trace.Link{SpanContext: all[0].SpanContext()}))...)
		all[0].AddLink(trace.Link{SpanContext: all[i].SpanContext()})
	}
	return ctx, all
}

func (all spans) end(err error) {
	for _, span := range all {
		end(span, err)
	}
}

// Headers returns the headers of the record of an assertion that goes to the shard of its far end.
func (s *Shard) Headers(m *mutation.Mutation) []kafka.Header {
	s.mu.Lock()
	r := s.stated[statement{m.Version.Rank, m.Version.Offset}]
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.Headers()
}

// Committed ends the spans of the window's records. It is called on the shard's goroutine, during the step "commit".
func (s *Shard) Committed(m *commitlog.Manifest) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	about := []attribute.KeyValue{attribute.Int64("giantstream.seq", m.Seq),
		attribute.Int64("giantstream.rows", m.Rows)}
	for _, span := range s.commit {
		span.SetAttributes(about...)
	}
	for _, r := range s.window {
		r.Span.SetAttributes(about[0])
		r.Span.End()
		if s.topic != "" && m.Rows > 0 {
			s.await(committed{r, m.Seq})
		}
	}
	s.window, s.commit = nil, nil
	clear(s.stated)
}

// await enters a record whose nodes' embeddings come next. s.mu is held.
func (s *Shard) await(r committed) {
	for _, id := range r.IDs {
		if s.waiting[id] == nil {
			s.order = append(s.order, id)
		}
		s.waiting[id] = append(s.waiting[id], r)
	}
	for len(s.order) > waitingNodes {
		delete(s.waiting, s.order[0])
		s.order = s.order[1:]
	}
}

// errStopped ends the spans of records that are read again.
var errStopped = errors.New("the shard has stopped; its next opening reads the record again")

// Close ends the spans of the open window.
func (s *Shard) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.window {
		r.Failed(errStopped)
	}
	s.batch, s.window = nil, nil
}
