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
	inputs := map[string]*preview.Input{topics.Nodes: c.Nodes(), topics.Edges: c.Edges()}
	for topic := range o.Mapping.Attributes {
		inputs[topic] = c.Attributes(topic)
	}
	for _, topic := range topics.OneKind {
		inputs[topic] = c.EdgeTopic(topic)
	}
	if topic := topics.Orders; topic != "" {
		inputs[topic] = c.Orders()
	}
	for topic, in := range inputs {
		if err := in.Topic(ctx, from, topics.Source(topic), translators[topic]); err != nil {
			return nil, err
		}
	}
	return c.Result(), nil
}
