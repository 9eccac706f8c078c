package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/feed"
	"giantstream/ingest/mirror"
	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/reshard"
	"giantstream/stream/shard"
	"giantstream/train/generation"
)

// ReshardOptions says how the store `from` becomes `into`, the store of the pipeline that cfg describes.
func ReshardOptions(ctx context.Context, cfg *config.Config, c *client.Client, from, into sink.Store,
	log *slog.Logger) (o reshard.Options, err error) {
	before, err := commitlog.LoadIdentity(ctx, from)
	if err != nil {
		return o, err
	}
	old := *cfg
	old.Pipeline, old.Shards = before.Name, before.Shards
	old.Kafka.Topics.Nodes, old.Kafka.Topics.Edges = before.Settings["kafka.topics.nodes"],
		before.Settings["kafka.topics.edges"]
	old.Kafka.Topics.Mirror = before.Settings["kafka.topics.mirror"]
	old.Ingest.Baskets.Topic = before.Settings["ingest.baskets.topic"]
	in, _, err := FeedOf(&old, c, log)
	if err != nil {
		return o, err
	}
	in.Topics = in.Topics.Ranked(before.Inputs)
	if before.ID != "" {
		if in.Pipeline, err = mirror.ParsePipeline(before.ID); err != nil {
			return o, err
		}
	}
	after := IdentityOf(cfg)
	after.Inputs = slices.Clone(before.Inputs)
	renameInputs(after.Inputs, &old, cfg)
	o = reshard.Options{Before: reshard.Pipeline{Identity: before, Topics: shardTopics(&old, before.Inputs)},
		After: reshard.Pipeline{Identity: after, Topics: shardTopics(cfg, after.Inputs)}, From: from, Into: into,
		Cluster: cluster{c, in, cfg, &old}, Partition: client.Partition,
		Compression: parquetio.Compression(cfg.Window.Compression),
		Writer:      "reshard-" + strings.ReplaceAll(buildinfo.Read().String(), " ", "-"), Log: log}
	doc, err := generation.Current(ctx, from)
	if errors.Is(err, generation.ErrNone) {
		return o, nil
	}
	o.Generation = &moving{ctx: ctx, store: from, doc: doc}
	return o, err
}

// renameInputs gives the further inputs of the old pipeline the names that they have in the new one. A topic of orders
// may have another name, and the one of what is ordered with what has.
func renameInputs(inputs []string, old, cfg *config.Config) {
	for i, name := range inputs {
		topic := name
		for keyed, source := range TopicsOf(old).Origins {
			if keyed == name {
				topic = source
			}
		}
		if topic == old.Ingest.Baskets.Topic && cfg.Ingest.Baskets.Topic != "" {
			topic = cfg.Ingest.Baskets.Topic
		}
		if name == old.OrderedRows() {
			inputs[i] = cfg.OrderedRows()
			continue
		}
		inputs[i] = ReadTopic(cfg, topic)
	}
}

// shardTopics returns the inputs of the shards. further are those that the pipeline ever had.
func shardTopics(cfg *config.Config, further []string) shard.Topics {
	t := TopicsOf(cfg).Ranked(further)
	return shard.Topics{Nodes: t.Nodes, Edges: t.Edges, Further: t.Further, Mirror: t.Mirror}
}

// cluster implements reshard.Cluster.
type cluster struct {
	*client.Client
	in         feed.Config // of the old pipeline's topics
	after, old *config.Config
}

// AtRest implements reshard.Cluster.
func (c cluster) AtRest(ctx context.Context) error {
	groups := map[string]bool{}
	for _, cfg := range []*config.Config{c.old, c.after} {
		groups[cfg.Group()], groups[cfg.Group()+"-embed"] = true, true
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		members, err := c.Members(ctx, group)
		if err != nil {
			return err
		}
		if members > 0 {
			return fmt.Errorf("%w: kafka group %q has %d members. Stop all workers; one that was killed leaves the "+
				"group after kafka.session_timeout", reshard.ErrBusy, group, members)
		}
	}
	return nil
}

// EnsureTopics implements reshard.Cluster.
func (c cluster) EnsureTopics(ctx context.Context) error { return EnsureTopics(ctx, c.Client, c.after) }

// Topic implements reshard.Cluster.
func (c cluster) Topic(ctx context.Context, name string) (t reshard.Topic, err error) {
	id, err := c.Identify(ctx, name)
	if errors.Is(err, client.ErrNoTopic) {
		return t, fmt.Errorf("kafka topic %q: %w", name, reshard.ErrNoTopic)
	}
	if err != nil {
		return t, err
	}
	first, err := c.FirstOffsets(ctx, name)
	if err != nil {
		return t, err
	}
	ends, err := c.LogEndOffsets(ctx, name)
	return reshard.Topic{ID: id[name].ID, First: first[name], End: ends[name]}, err
}

// Range implements reshard.Cluster.
func (c cluster) Range(ctx context.Context, topic string, partition int, base, from, to int64,
	each func(mutation.Mutation)) error {
	in := c.in
	in.Bases = map[string]int64{topic: base}
	_, _, err := in.Range(ctx, topic, partition, from, to, each)
	return err
}

// moving is the generation that is served, opened when the first row needs it. It implements reshard.Generation.
type moving struct {
	ctx   context.Context //nolint:containedctx // Featurize has none, and lives as long as the command
	store sink.Store
	doc   *generation.Doc
	open  *generation.Generation
}

func (m *moving) Number() int64      { return m.doc.Generation }
func (m *moving) Cut() commitlog.Cut { return m.doc.Cut }

// LearnedFrom implements reshard.Generation.
func (m *moving) LearnedFrom() (commitlog.Cut, error) {
	first, err := generation.Load(m.ctx, m.store, m.doc.LearnedFrom())
	if err != nil {
		return nil, fmt.Errorf("it has learned from generation %d: %w", m.doc.LearnedFrom(), err)
	}
	return first.Cut, nil
}

// Featurize implements shard.Featurizer.
func (m *moving) Featurize(row *rows.Row) (err error) {
	if m.open == nil {
		if m.open, err = generation.Open(m.ctx, m.store, m.doc, nil); err != nil {
			return err
		}
	}
	return m.open.Featurize(row)
}

// CopyTo implements reshard.Generation.
func (m *moving) CopyTo(ctx context.Context, into sink.Store, shards int, shardOf func(id string) int,
	p ambient.Progress) error {
	return m.doc.CopyTo(ctx, m.store, into, shards, shardOf, p)
}
