// Package ingesting is the part of the service that reads the input topics: a consumer group assigns shards to the
// process, and each shard's records become committed windows. record.go has the path of a record.
package ingesting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/ingesting/copying"
	"giantstream/cmd/internal/service/ingesting/standby"
	"giantstream/cmd/internal/service/ingesting/upkeep"
	"giantstream/cmd/internal/service/membership"
	"giantstream/cmd/internal/service/settings"
	"giantstream/cmd/internal/telemetry"
	"giantstream/config"
	"giantstream/ingest"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/external"
	"giantstream/ingest/feed"
	"giantstream/ingest/group"
	"giantstream/ingest/mirror"
	"giantstream/ingest/preflight"
	"giantstream/ingest/preview"
	"giantstream/ingest/schema"
	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

// Follower publishes the embeddings of a shard that this process streams, until ctx ends. traces follow its records.
type Follower interface {
	Follow(ctx context.Context, shard int, traces *telemetry.Shard) error
}

// Ingest reads the input topics and commits what they state. Its exported fields are its inputs, set before Open.
type Ingest struct {
	// Config is the configuration as of the start, Settings that in force.
	Config   *config.Config
	Settings *settings.Settings
	Store    sink.Store
	Identity commitlog.Identity
	Groups   membership.Membership
	Topics   ingest.Topics
	// Feeds say how records become mutations. Open completes them.
	Feeds   feed.Config
	Schemas *schema.Registry // nil unless values name their schema
	Letters *deadletter.Log
	// External has vectors of texts, nil without a model.
	External *external.Client
	// Features of rows come from the generation that is served.
	Features shard.Featurizer
	Heads    *heads.Heads
	// Streams: this process reads. Otherwise it only knows how far others are.
	Streams  bool
	Follower Follower // nil if the process publishes nothing
	Live     *live.View
	Progress *live.Progress
	Traces   *telemetry.Traces
	// Load says that files are sent and then drained: the first load of a graph is committed as a whole. Resent: they
	// are sent to the embedded broker again.
	Load, Resent bool
	// AcceptLoss names input topics of which losses are accepted.
	AcceptLoss []string
	// AllowUnmatched: none of the first records need have a field of the mapping.
	AllowUnmatched bool
	StandbyEvery   time.Duration
	Registry       prometheus.Registerer
	Log            *slog.Logger

	// Watches has the shards that this process streams.
	Watches Watches

	// place is this process's place in the consumer group.
	place place

	// Standbys are shards of other workers.
	Standbys *standby.Standbys

	metrics *metrics
	// counted is what became of the records that were committed before Open.
	counted []InputOutcomes

	fields *fieldCounts
	copies *copying.Copies
	texts  externalModel
	upkeep *upkeep.Upkeep
	// accepted is what losses of input topics this start accepts.
	accepted *acceptance
	// began is how large the graph was before files were sent again.
	began size
	cache *shard.Cache
	// draining > 0: shards commit as soon as they are caught up.
	draining atomic.Int32
	// finishing: this process is to come to an end by itself. What only a person can mend is an error then.
	finishing atomic.Bool
}

// Open checks the input topics, and completes Feeds.
func (in *Ingest) Open(ctx context.Context) (err error) {
	in.metrics = newMetrics(in.Registry)
	if in.fields, err = newFieldCounts(&in.Feeds); err != nil {
		return err
	}
	in.Registry.MustRegister(in.fields)
	if in.Feeds.Pipeline, err = mirror.ParsePipeline(in.Identity.ID); err != nil {
		return err
	}
	in.Feeds.Bounds, in.Feeds.Letters, in.Feeds.Metrics = in.bounds, in.Letters, &in.metrics.feed
	in.Feeds.Fields = in.fields.byTopic
	in.Feeds.Traces = in.Traces.Records()
	in.Resent = in.Resent && in.Config.Kafka.Embedded()
	if in.accepted, err = accept(append(in.Topics.Inputs(), in.Topics.Sources()...), in.AcceptLoss,
		in.Resent); err != nil {
		return err
	}
	in.copies = &copying.Copies{Store: in.Store, Groups: in.Groups, Topics: in.Topics, Feeds: &in.Feeds,
		Replaced: in.accepted.replaced, Forgiven: in.accepted.lost, Log: in.Log}
	in.Registry.MustRegister(shardCollector{in.Config.Shards, &in.Watches, in.waits, in.copies.Known})
	in.upkeep = &upkeep.Upkeep{Store: in.Store, Heads: in.Heads, Compaction: in.Config.Compaction, Log: in.Log}
	in.Standbys = &standby.Standbys{Store: in.Store, Shards: in.Config.Shards,
		Dir: filepath.Join(in.Config.StateDir, "standby"), Every: in.StandbyEvery, Heads: in.Heads,
		Streamed: in.Watches.ready, Log: in.Log}
	in.Standbys.Open(in.Registry)
	in.texts.in, in.texts.client = in, in.External
	if err := in.texts.open(ctx); err != nil {
		return err
	}
	heads, err := in.Heads.NewestOfAll(ctx)
	if err != nil {
		return err
	}
	in.counted = OutcomesOf(heads, in.Topics)
	if in.Resent {
		if in.began, err = in.size(ctx); err != nil {
			return err
		}
	}
	if !in.Streams {
		return nil
	}
	if err := in.preflight(ctx); err != nil {
		return err
	}
	if err := in.checkMapping(ctx, heads); err != nil {
		return err
	}
	return in.copies.Open(ctx)
}

// firstRecords is how many records of each input are read before the first of them is consumed.
const firstRecords = 1000

// checkMapping looks at the first records of each topic, and returns preview.ErrMapping if none of them has a field
// that the graph is made of: an id, a text, a far end, the items of orders. A topic without records goes on.
//
// It looks before the first commit alone. From then on the store is bound to the mapping by which it was read, so
// there is nothing to learn, and what compaction has left of the topics must not keep a pipeline from starting.
func (in *Ingest) checkMapping(ctx context.Context, heads []*commitlog.Manifest) error {
	if in.AllowUnmatched || slices.ContainsFunc(heads, func(m *commitlog.Manifest) bool { return m != nil }) {
		return nil
	}
	o := preview.Options{Mapping: in.Feeds.Mapping, Limits: in.Feeds.Limits, Records: firstRecords}
	if len(o.Mapping.Nodes.Edges) > 0 {
		o.Expected = []string{"nodes.edges"}
	}
	p, err := preview.Topics(ctx, in.Groups.Client, in.Topics, in.Feeds.Translators, o)
	if err != nil {
		return fmt.Errorf("look at the first records of the topics: %w", err)
	}
	if err := p.Err(nil); err != nil {
		return fmt.Errorf("%w\nNothing was consumed. Correct the mapping (ingest.…), which 'giantstream preview -c "+
			"FILE' shows, or start with --allow-unmatched if later records have the field", err)
	}
	if w := p.Texts.Warning(); w != "" {
		in.Log.Warn("the mapping may be wrong: " + w)
	}
	return nil
}

// preflight checks the input topics before they are consumed.
func (in *Ingest) preflight(ctx context.Context) error {
	former, err := commitlog.FormerShards(ctx, in.Store)
	if err != nil {
		return err
	}
	warnings, err := preflight.Check(ctx, preflight.Options{Client: in.Groups.Client, Topics: in.Topics,
		Mapping: in.Feeds.Mapping, Limits: in.Feeds.Limits, Translators: in.Feeds.Translators,
		Shards: in.Config.Shards, Former: former})
	for _, w := range warnings {
		in.Log.Warn(w)
	}
	if err == nil && in.Topics.Mirror != "" {
		err = mirror.CheckOwner(ctx, in.Groups.Client, in.Topics.Mirror, in.Feeds.Pipeline)
	}
	return err
}

// Run reads until ctx ends.
func (in *Ingest) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return in.consume(ctx) })
	g.Go(func() error { return in.watchFields(ctx) })
	if in.Config.Stream.Standby > 0 {
		g.Go(func() error { return in.Standbys.Run(ctx) })
	}
	if in.Topics.Repartitioned() {
		g.Go(func() error { return in.copies.Run(ctx) })
	}
	g.Go(func() error { return in.texts.run(ctx) })
	return g.Wait()
}

// loadWindows is the least that open windows may take during the first load of a graph. Nothing else
// needs the memory before the first generation is built.
const loadWindows = 64 << 20

// consume joins the consumer group and runs a worker for each shard that the group assigns.
func (in *Ingest) consume(ctx context.Context) error {
	in.cache = shard.NewCache()
	defer in.cache.Release()
	if err := commitlog.ClaimIdentity(ctx, in.Store, in.Identity); err != nil {
		return err
	}
	if in.Load {
		in.cache.LimitWindows(max(loadWindows, int64(in.Config.Featurize.MemoryLimit)/8))
	}
	return in.Groups.Explain(ctx, in.Groups.Group, group.Run(ctx, group.Options{
		Client: in.Groups.Client, Group: in.Groups.Group, Protocol: in.Groups.Protocol(in.Follower != nil),
		Topics: in.Topics.Inputs(), SessionTimeout: in.Groups.SessionTimeout, Warm: in.Standbys.Warm, Log: in.Log,
		Assigned: in.assigned, Dissolved: in.place.lose, Failed: in.place.failed,
	}, in.work))
}

// assigned runs when the group has assigned shards to this worker, before it opens them.
//
// A worker with other settings, which were accepted at its start, joins the group after it has replaced those in the
// store. So each worker compares its settings with the store's now.
func (in *Ingest) assigned(ctx context.Context, shards []int) error {
	in.place.take()
	in.cache.Share(len(shards))
	loop := retry.Loop{Service: "the store", Min: shardRetry, Max: shardRetryMax, Log: in.Log}
	return loop.Do(ctx, "claim the store", func(ctx context.Context) error {
		return commitlog.ClaimIdentity(ctx, in.Store, in.Identity)
	})
}

const (
	// shardRetry and shardRetryMax are the first and the longest pause before a shard that failed is
	// started again. A shard that ran for shardRetryMax begins anew.
	shardRetry    = 2 * time.Second
	shardRetryMax = 30 * time.Second
)

// work runs a shard until the group takes the shard away. A shard fails when the store or the broker is away for long,
// or when it loses a commit race. It is then opened again from the newest manifest of its commit log, and reads again
// what it had not committed.
func (in *Ingest) work(ctx context.Context, a group.Assignment) error {
	log := in.Log.With("shard", a.Shard)
	defer in.Watches.Stopped(a.Shard, nil)
	pause := retry.Backoff{Min: shardRetry, Max: shardRetryMax}
	var fails streak
	for {
		began := time.Now()
		err := in.runShard(ctx, a)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > shardRetryMax {
			pause.Reset()
		}
		in.Watches.Stopped(a.Shard, err)
		wait := pause.Next()
		switch {
		case errors.Is(err, shard.ErrFenced):
			log.Warn("another worker has committed for this shard; starting over from its manifest", "error", err)
		case retry.Final(err), in.finishing.Load() && needsPerson(err), fails.tooMany(err, time.Since(began)):
			return fmt.Errorf("shard %d: %w", a.Shard, err)
		default:
			log.Error("shard stopped, starting it again", "in", wait, "error", err)
		}
		in.metrics.shardRestarts.Inc()
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
