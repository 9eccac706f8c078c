package publishing

import (
	"context"

	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
)

// outlet is a topic of embeddings. A shard has a follower for each, with a cursor of its own, so that none waits for
// another.
type outlet struct {
	cursor    commitlog.Outlet
	topic     string
	publisher *embeddingtopic.Publisher
	// model returns what a shard's embeddings are made with, nil before the first generation.
	model func(shard int) *publish.Model
}

// outlets are the topics that this pipeline publishes embeddings to.
func (p *Publish) outlets() []outlet {
	all := []outlet{{commitlog.Served, p.Topics.Embeddings, p.publisher, p.model}}
	if p.Topics.Canary != "" {
		all = append(all, outlet{commitlog.Canary, p.Topics.Canary, p.canaryPublisher, p.canaryModel})
	}
	return all
}

// publisherOf returns what a follower sends records to.
func (p *Publish) publisherOf(shard int, o *outlet, traces *telemetry.Shard) publish.Publisher {
	if o.cursor == commitlog.Canary {
		return countedPublisher{o.publisher, p.metrics}
	}
	return timedPublisher{o.publisher, p.metrics, traces, p.Exemplars, p.Served, shard}
}

// countedPublisher counts what the canary topic acknowledges.
type countedPublisher struct {
	publisher *embeddingtopic.Publisher
	metrics   *metrics
}

// Publish implements publish.Publisher.
func (p countedPublisher) Publish(ctx context.Context, records []embedding.Record) error {
	err := p.publisher.Publish(ctx, records)
	if err == nil {
		p.metrics.canaryPublished.Add(float64(len(records)))
	}
	return err
}

// announcer returns what followers call when all of a shard is published with a generation, nil unless the
// configuration asks for it.
func (p *Publish) announcer(o *outlet) func(context.Context, embedding.Completion) error {
	if !p.ControlRecords {
		return nil
	}
	return func(ctx context.Context, c embedding.Completion) error {
		ends, err := p.Groups.Client.EndOffsets(ctx, o.topic)
		if err != nil {
			return err
		}
		c.Shards = p.Shards
		return o.publisher.Announce(ctx, len(ends[o.topic]), c)
	}
}
