package service

import (
	"context"
	"time"

	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
)

// timedPublisher measures the age of changes when the sink topic acknowledges their embeddings.
type timedPublisher struct {
	publisher *embeddingtopic.Publisher
	metrics   *metrics
	// cut returns the newest manifest of the shard that the current generation covers. What that
	// manifest covers is published again with the generation; it has not changed.
	cut func() int64
}

// Publish implements publish.Publisher.
func (p timedPublisher) Publish(ctx context.Context, records []embedding.Record) error {
	if err := p.publisher.Publish(ctx, records); err != nil {
		return err
	}
	now, cut := time.Now().UnixMicro(), p.cut()
	p.metrics.published.Add(float64(len(records)))
	for i := range records {
		if records[i].Seq > cut {
			p.metrics.freshness.Observe(float64(now-records[i].EventTime) / 1e6)
		}
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
