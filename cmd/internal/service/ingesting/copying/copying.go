// Package copying is the part of ingesting that copies topics which are not partitioned by node to topics that are.
package copying

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/service/membership"
	"giantstream/ingest"
	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
	"giantstream/ingest/repartition"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/sources"
)

// Copies are the topics that are repartitioned. The exported fields are its inputs.
type Copies struct {
	Store  sink.Store
	Groups membership.Membership
	Topics ingest.Topics
	Feeds  *feed.Config
	// Replaced and Forgiven are topics of which this start accepts that they were created again, and that they have
	// lost records.
	Replaced, Forgiven map[string]bool
	Log                *slog.Logger

	sources map[string]sources.Topic              // as of Open
	lost    atomic.Pointer[[]commitlog.ShardLost] // nil before the first look
}

// Run copies until ctx ends, or a topic is not the one that was opened.
func (c *Copies) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.repartition(ctx) })
	g.Go(func() error { return c.watch(ctx) })
	return g.Wait()
}

// Lag tells each, for each partition, where its records end and how many of them are not copied yet.
func (c *Copies) Lag(ctx context.Context, each func(group string, partition int, end, open int64)) error {
	return repartition.Lag(ctx, c.Groups.Client, c.routes(), each)
}

// routes are the topics that are repartitioned, and their targets; nil if there are none.
func (c *Copies) routes() (routes []repartition.Route) {
	for _, topic := range c.Topics.Keyed() {
		source := c.Topics.Source(topic)
		routes = append(routes, repartition.Route{From: source, To: topic,
			Group: c.copyGroup(topic), Epoch: c.sources[source].Epoch, Translator: c.Feeds.Translators[topic],
			Positions: positions{c, source, topic},
			Decoder:   func() (*decode.Decoder, error) { return c.Feeds.Decoder(topic, 1) }})
	}
	return routes
}

// positions are those of a topic that is repartitioned, in the store.
type positions struct {
	c          *Copies
	from, into string
}

func (p positions) Copied(ctx context.Context, partition int) (int64, error) {
	copied, ok, err := sources.ReadCopied(ctx, p.c.Store, p.from, partition)
	if err != nil || !ok || copied.Into != p.into || copied.Epoch != p.c.sources[p.from].Epoch {
		return -1, err
	}
	return copied.Next, nil
}

func (p positions) NoteCopied(ctx context.Context, partition int, next int64) error {
	return sources.Copied{Into: p.into, Epoch: p.c.sources[p.from].Epoch, Next: next}.Put(ctx, p.c.Store, p.from,
		partition)
}

// copyGroup is the consumer group that fills a topic with copies. A source that was created again has another
// one, because what the group has committed are offsets of the old topic.
func (c *Copies) copyGroup(topic string) string {
	source := c.Topics.Source(topic)
	what := source
	switch topic {
	case c.Topics.Nodes:
		what = "nodes"
	case c.Topics.Edges:
		what = "edges"
	}
	name := c.Groups.Group + "-rekey-" + what
	if epoch := c.sources[source].Epoch; epoch > 0 {
		name += fmt.Sprint("-", epoch)
	}
	return name
}

// repartition copies the source topics until ctx ends.
func (c *Copies) repartition(ctx context.Context) error {
	return c.Groups.Explain(ctx, c.copyGroup(c.Topics.Nodes), repartition.Run(ctx, repartition.Options{
		Client: c.Groups.Client, Protocol: c.Groups.Protocol(false), Routes: c.routes(),
		SessionTimeout: c.Groups.SessionTimeout,
		RecordBytes:    c.Feeds.Limits.RecordBytes, DeadLetters: c.Topics.DeadLetters, Clock: time.Now, Log: c.Log,
		OnLost: c.lose}))
}
