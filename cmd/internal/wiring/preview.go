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
	keyed := [2]string{topics.Nodes, topics.Edges}
	read := keyed
	if topics.Repartitioned() {
		read = [2]string{topics.SourceNodes, topics.SourceEdges}
	}
	for i, edges := range []bool{false, true} {
		translator := translators[keyed[i]]
		if translator == nil {
			translator = translators[read[i]]
		}
		if err := c.Topic(ctx, edges, from, read[i], translator); err != nil {
			return nil, err
		}
	}
	if topic := cfg.Ingest.Baskets.Topic; topic != "" {
		if err := c.OrderTopic(ctx, from, topic, translators[topic]); err != nil {
			return nil, err
		}
	}
	return c.Result(), nil
}
