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
	return preview.Topics(ctx, from, TopicsOf(cfg), translators, o)
}
