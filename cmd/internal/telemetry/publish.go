package telemetry

import (
	"context"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"giantstream/ingest/recordtrace"
	"giantstream/sink/embedding"
	"giantstream/stream/publish"
)

// Model times the encoding of a model, which precedes the publication of what was encoded.
func (s *Shard) Model(m *publish.Model) *publish.Model {
	if s == nil || m == nil {
		return m
	}
	encode := m.Encode
	m.Encode = func(ids, texts []string, out []float32) error {
		began := time.Now()
		err := encode(ids, texts, out)
		s.encoded = [2]time.Time{began, time.Now()}
		return err
	}
	return m
}

// Publication is the publication of embeddings of nodes that followed records have changed. Methods may be called on
// nil: there are none.
type Publication struct {
	shard *Shard
	ctx   context.Context //nolint:containedctx // of the first span
	spans spans
	send  trace.Span
	// nodes have the span of the newest record of each, records the rows that the publication is of.
	nodes   map[string]trace.SpanContext
	records []embedding.Record
}

// Publish begins the publication of embeddings, on the follower's goroutine.
func (s *Shard) Publish(ctx context.Context, records []embedding.Record) *Publication {
	if s == nil {
		return nil
	}
	encoded := s.encoded
	s.encoded = [2]time.Time{}
	followed, nodes := s.expected(records)
	if len(followed) == 0 {
		return nil
	}
	began := encoded[0]
	if began.IsZero() {
		began = time.Now()
	}
	p := &Publication{shard: s, records: records, nodes: map[string]trace.SpanContext{}}
	p.ctx, p.spans = s.startSpans(ctx, "publish "+s.topic, followed, trace.WithTimestamp(began),
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
			attribute.String("messaging.system", "kafka"),
			attribute.String("messaging.operation.type", "send"),
			attribute.String("messaging.operation.name", "publish"),
			attribute.String("messaging.destination.name", s.topic),
			attribute.Int("messaging.batch.message_count", len(records)),
			attribute.Int64("giantstream.generation", records[0].Generation)))
	for id, i := range nodes {
		p.nodes[id] = p.spans[i].SpanContext()
	}
	if !encoded[0].IsZero() {
		_, span := s.tracer.Start(p.ctx, "encode", trace.WithTimestamp(began))
		span.End(trace.WithTimestamp(encoded[1]))
	}
	_, p.send = s.tracer.Start(p.ctx, "send")
	return p
}

// expected returns the followed records that the embeddings are due to, and for each node which of them is the newest.
func (s *Shard) expected(records []embedding.Record) (followed []*recordtrace.Record, newest map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return nil, nil
	}
	newest = map[string]int{}
	places := map[*recordtrace.Record]int{}
	for i := range records {
		for _, r := range s.waiting[records[i].NodeID] {
			if r.seq > records[i].Seq {
				continue // of a later row
			}
			at, known := places[r.Record]
			if !known {
				at = len(followed)
				places[r.Record] = at
				followed = append(followed, r.Record)
			}
			newest[records[i].NodeID] = at
		}
	}
	return followed, newest
}

// Headers returns what embeddingtopic.Publisher asks for the headers of a record, nil for no headers.
func (p *Publication) Headers() func(*embedding.Record) []kafka.Header {
	if p == nil {
		return nil
	}
	return func(r *embedding.Record) []kafka.Header {
		if span, ok := p.nodes[r.NodeID]; ok {
			return recordtrace.Headers(span)
		}
		return nil
	}
}

// TraceID returns the trace that a record's embedding belongs to, "" for none.
func (p *Publication) TraceID(r *embedding.Record) string {
	if p == nil {
		return ""
	}
	if span, ok := p.nodes[r.NodeID]; ok {
		return span.TraceID().String()
	}
	return ""
}

// End ends the publication. What has failed is published again.
func (p *Publication) End(err error) {
	if p == nil {
		return
	}
	end(p.send, err)
	p.spans.end(err)
	if err != nil {
		return
	}
	s := p.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range p.records {
		id := p.records[i].NodeID
		if _, ours := p.nodes[id]; !ours {
			continue
		}
		left := slices.DeleteFunc(s.waiting[id], func(r committed) bool { return r.seq <= p.records[i].Seq })
		if len(left) == 0 {
			delete(s.waiting, id)
			s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == id })
			continue
		}
		s.waiting[id] = left
	}
}
