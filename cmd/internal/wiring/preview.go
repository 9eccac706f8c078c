package wiring

import (
	"context"

	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/preview"
)

// PreviewTopics maps the first records of the pipeline's input topics: of the sources, where they are
// repartitioned. It creates nothing.
func PreviewTopics(ctx context.Context, cfg *config.Config, from *client.Client, o preview.Options) (*preview.Preview,
	error) {
	_, translators, err := OpenSchemas(cfg)
	if err != nil {
		return nil, err
	}
	c, err := preview.New(o)
	if err != nil {
		return nil, err
	}
	topics := TopicsOf(cfg)
	for i, topic := range []string{topics.Nodes, topics.Edges} {
		if err := c.Topic(ctx, i == 1, from, topics.Source(topic), translators[topic]); err != nil {
			return nil, err
		}
	}
	if topic := topics.Orders; topic != "" {
		if err := c.OrderTopic(ctx, from, topics.Source(topic), translators[topic]); err != nil {
			return nil, err
		}
	}
	return c.Result(), nil
}
