package publishing

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/train/generation"
)

// timedPublisher measures the age of changes when the sink topic acknowledges their embeddings.
type timedPublisher struct {
	publisher *embeddingtopic.Publisher
	metrics   *metrics
	// traces follow some of the changes, nil for none. With exemplars the histogram names their traces.
	traces    *telemetry.Shard
	exemplars bool
	// What the current generation covers of the shard is published again with the generation; it has not changed.
	served *generation.Served
	shard  int
}

// Publish implements publish.Publisher.
func (p timedPublisher) Publish(ctx context.Context, records []embedding.Record) error {
	traced := p.traces.Publish(ctx, records)
	err := p.publisher.PublishWith(ctx, records, traced.Headers())
	traced.End(err)
	if err != nil {
		return err
	}
	now, cut := time.Now().UnixMicro(), p.served.Cut(p.shard)
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
