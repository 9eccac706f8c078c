package service

import (
	"context"
	"time"

	"giantstream/config"
	"giantstream/ingest/client"
)

// EndOffsets returns where the input topics end, per topic and shard, for
// commands that look; nil for the embedded broker, which is reachable from its
// own process alone.
func EndOffsets(ctx context.Context, cfg *config.Config) (map[string][]int64, error) {
	if cfg.Kafka.Embedded() {
		return nil, nil
	}
	opts, err := clientOptions(cfg)
	if err != nil {
		return nil, err
	}
	c, err := client.New(opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return c.EndOffsets(ctx, TopicsOf(cfg).Inputs()...)
}
