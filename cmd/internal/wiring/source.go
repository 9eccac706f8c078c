package wiring

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
	"giantstream/ingest/schema"
	"giantstream/stream/mutation"
)

// FeedOf returns how the records of a pipeline's topics become mutations, and the schema registry that they need, nil
// for none.
func FeedOf(cfg *config.Config, c *client.Client, log *slog.Logger) (feed.Config, *schema.Registry, error) {
	registry, translators, err := OpenSchemas(cfg)
	mapping, limits := MappingOf(cfg)
	return feed.Config{Client: c, Topics: TopicsOf(cfg), Mapping: mapping, Limits: limits, Translators: translators,
		Shards: cfg.Shards, MaxFuture: cfg.Ingest.MaxFuture, Clock: time.Now, Log: log}, registry, err
}

// Source is the input topics of a pipeline. It implements mutation.Source.
type Source struct {
	*client.Client
	Feed feed.Config
}

// OpenSource attaches to the pipeline's cluster. further are the inputs that the pipeline ever had beside nodes and
// edges. Call the returned function when done.
func OpenSource(ctx context.Context, cfg *config.Config, further []string, log *slog.Logger) (
	Source, func() error, error) {
	c, detach, err := Attach(ctx, cfg)
	if err != nil {
		return Source{}, nil, err
	}
	in, _, err := FeedOf(cfg, c, log)
	if err != nil {
		_ = detach() // the first error is the one to report
		return Source{}, nil, err
	}
	in.Topics = in.Topics.Ranked(further)
	in.Ahead = refusedAhead(c, in.Topics.DeadLetters)
	return Source{c, in}, detach, nil
}

// refusedAhead reads from the dead letters, once, which records were refused for an event time too far ahead, by the
// place where they were read: another copy of one may have been taken. Calls of what it returns come one after the
// other.
func refusedAhead(c *client.Client, topic string) func(context.Context) (map[deadletter.Origin]time.Time, error) {
	var ahead map[deadletter.Origin]time.Time
	return func(ctx context.Context) (map[deadletter.Origin]time.Time, error) {
		if ahead != nil {
			return ahead, nil
		}
		found := map[deadletter.Origin]time.Time{}
		all := deadletter.Filter{Code: decode.FutureTime, All: true, Repeated: true}
		for l, err := range deadletter.List(ctx, c, topic, all) {
			if errors.Is(err, client.ErrNoTopic) {
				break
			}
			if err != nil {
				return nil, err
			}
			found[l.Place()] = l.Time
		}
		ahead = found
		return ahead, nil
	}
}

// Range implements mutation.Source.
func (s Source) Range(ctx context.Context, topic string, partition int, from, to int64,
	each func(mutation.Mutation)) (records, refused int64, err error) {
	return s.Feed.Range(ctx, topic, partition, from, to, each)
}
