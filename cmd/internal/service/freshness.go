package service

import (
	"context"
	"time"

	"giantstream/sink/embedding"
)

// timedPublisher notes how old changes are when the sink topic has their
// embeddings.
type timedPublisher struct {
	publisher *embedding.Publisher
	metrics   *metrics
	// cut is the newest manifest of the shard that the current generation was
	// made of. What it covers is published once more with the generation,
	// which is no change.
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
