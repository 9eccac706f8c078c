package wiring

import (
	"context"

	"giantstream/config"
	"giantstream/ingest/owner"
	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// IdentityOf returns what a pipeline's store is made for. The store gives it an id.
func IdentityOf(cfg *config.Config) commitlog.Identity {
	return commitlog.Identity{Name: cfg.Pipeline, Shards: cfg.Shards, Undirected: cfg.Ingest.Undirected,
		Settings: GraphSettings(cfg), Inputs: TopicsOf(cfg).Further}
}

// OwnerOf returns who a pipeline is to other pipelines that may publish to its topics.
func OwnerOf(ctx context.Context, cfg *config.Config, store sink.Store, id commitlog.Identity) (owner.Pipeline, error) {
	continues, err := commitlog.Continues(ctx, store)
	return owner.Pipeline{Name: id.Name, ID: id.ID, Continues: continues,
		Groups: []string{cfg.Group(), cfg.Group() + "-embed"}}, err
}

// GraphSettings returns the settings by which records become the graph, by their names in the
// configuration. With other ones, the same records would be another graph. Limits are not among
// them: a record beyond a limit is a dead letter, which can be replayed.
func GraphSettings(cfg *config.Config) map[string]string {
	s := cfg.Values(config.Graph)
	// The mirror topic has a name by default, and a directed graph has none.
	s["kafka.topics.mirror"] = TopicsOf(cfg).Mirror
	if !cfg.Ingest.Undirected {
		delete(s, "kafka.topics.mirror")
	}
	for path, before := range addedSettings {
		if s[path] == before {
			delete(s, path)
		}
	}
	return s
}

// addedSettings are settings that older releases did not have, with the value that says what these did. A
// store does not hold such a value, so that stores of older releases are those of this one.
var addedSettings = map[string]string{
	"ingest.nodes.deleted": "deleted",
	"ingest.edges.deleted": "deleted",
	"ingest.edges.weight":  "",
	"ingest.edges.kind":    "",

	"ingest.edges.directed_kinds": "",
	"ingest.edges.topics":         "",

	"ingest.nodes.attributes":      "",
	"ingest.nodes.vectors":         "",
	"ingest.attributes.fields":     "",
	"ingest.attributes.vectors":    "",
	"ingest.attributes.id":         "id",
	"ingest.attributes.event_time": "",

	"ingest.external.model":      "",
	"ingest.external.dimensions": "0",

	"ingest.baskets.topic":      "",
	"ingest.baskets.format":     "json",
	"ingest.baskets.id":         "id",
	"ingest.baskets.items":      "items[*].id",
	"ingest.baskets.quantity":   "",
	"ingest.baskets.time":       "",
	"ingest.baskets.event_time": "",
	"ingest.baskets.kind":       "",
	"ingest.baskets.customer":   "",
	"ingest.baskets.deleted":    "deleted",
	"ingest.baskets.mode":       "",
}
