package service

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
)

// timedPublisher measures the age of changes when the sink topic acknowledges their embeddings.
type timedPublisher struct {
	publisher *embeddingtopic.Publisher
	metrics   *metrics
	// traces follow some of the changes, nil for none. With exemplars the histogram names their traces.
	traces    *telemetry.Shard
	exemplars bool
	// cut returns the newest manifest of the shard that the current generation covers. What that
	// manifest covers is published again with the generation; it has not changed.
	cut func() int64
}

// Publish implements publish.Publisher.
func (p timedPublisher) Publish(ctx context.Context, records []embedding.Record) error {
	traced := p.traces.Publish(ctx, records)
	err := p.publisher.PublishWith(ctx, records, traced.Headers())
	traced.End(err)
	if err != nil {
		return err
	}
	now, cut := time.Now().UnixMicro(), p.cut()
	p.metrics.published.Add(float64(len(records)))
	for i := range records {
		if records[i].Seq <= cut {
			continue
		}
		age := float64(now-records[i].EventTime) / 1e6
		if id := traced.TraceID(&records[i]); id != "" && p.exemplars {
			p.metrics.freshness.(prometheus.ExemplarObserver).ObserveWithExemplar(age,
				prometheus.Labels{"trace_id": id})
			continue
		}
		p.metrics.freshness.Observe(age)
	}
	return nil
}

// cutOf is the newest manifest of a shard that the current generation covers.
func (s *Service) cutOf(shard int) int64 {
	if g := s.Current(); g != nil {
		return g.Doc.Cut[shard]
	}
	return 0
}
