package service

import (
	"context"
	"path/filepath"
	"time"

	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/train"
)

// Backfill sends files or objects to the pipeline's input topics through the
// given client, and goes on where an interrupted one stopped.
func Backfill(ctx context.Context, cfg *config.Config, c *client.Client, nodes, edges []backfill.Input, p train.Progress) (backfill.Stats, error) {
	mapping, limits := MappingOf(cfg)
	// The checkpoint lives where the records are: with the embedded
	// broker's log, so that both are lost or kept together.
	dir := cfg.StateDir
	if cfg.Kafka.Embedded() {
		dir = cfg.Kafka.DataDir
	}
	return backfill.Run(ctx, backfill.Options{
		Client: c, Topics: TopicsOf(cfg), Nodes: nodes, Edges: edges, Mapping: mapping, Limits: limits,
		Checkpoint: filepath.Join(dir, "backfill.checkpoint"), Clock: time.Now, Progress: p,
	})
}

// Connect returns a client to the cluster of the configuration, which must
// not be the embedded broker: that one lives in the process of `run`.
func Connect(ctx context.Context, cfg *config.Config) (*client.Client, error) {
	opts, err := clientOptions(cfg)
	if err != nil {
		return nil, err
	}
	c, err := client.New(opts)
	if err != nil {
		return nil, err
	}
	return c, EnsureTopics(ctx, c, cfg)
}
