package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest/feed"
	"giantstream/ingest/group"
	"giantstream/ingest/mirror"
	"giantstream/internal/retry"
	"giantstream/sink/parquetio"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
	"giantstream/stream/shard"
)

// consume joins the consumer group and runs a worker for each shard that the group assigns.
func (s *Service) consume(ctx context.Context) error {
	cache := shard.NewCache()
	defer cache.Release()
	if err := commitlog.ClaimIdentity(ctx, s.store, s.id); err != nil {
		return err
	}
	if s.load {
		cache.LimitWindows(max(loadWindows, int64(s.cfg.Featurize.MemoryLimit)/8))
	}
	return s.explainGroup(ctx, s.cfg.Group(), group.Run(ctx, group.Options{
		Client: s.client, Group: s.cfg.Group(), Protocol: s.roles.protocol(s.id.ID), Topics: s.topics.Inputs(),
		SessionTimeout: s.cfg.Kafka.SessionTimeout, Warm: s.standbys.warm, Log: s.log,
		Assigned: func(ctx context.Context, shards []int) error {
			cache.Share(len(shards))
			return s.assigned(ctx)
		},
	}, func(ctx context.Context, a group.Assignment) error { return s.work(ctx, a, cache) }))
}

// assigned runs when the group has assigned shards to this worker, before it opens them.
//
// A worker with other settings, which were accepted at its start, joins the group after it has replaced those in the
// store. So each worker compares its settings with the store's now.
func (s *Service) assigned(ctx context.Context) error {
	loop := retry.Loop{Service: "the store", Min: shardRetry, Max: shardRetryMax, Log: s.log}
	return loop.Do(ctx, "claim the store", func(ctx context.Context) error {
		return commitlog.ClaimIdentity(ctx, s.store, s.id)
	})
}

// loadWindows is the least that open windows may take during the first load of a graph. Nothing else
// needs the memory before the first generation is built.
const loadWindows = 64 << 20

const (
	// shardRetry and shardRetryMax are the first and the longest pause before a shard that failed is
	// started again. A shard that ran for shardRetryMax begins anew.
	shardRetry    = 2 * time.Second
	shardRetryMax = 30 * time.Second
)

// work runs a shard and its follower until the group takes the shard away. A shard fails when the
// store or the broker is away for long, or when it loses a commit race. It is then opened again
// from the newest manifest of its commit log, and reads again what it had not committed.
func (s *Service) work(ctx context.Context, a group.Assignment, cache *shard.Cache) error {
	log := s.log.With("shard", a.Shard)
	defer s.watches.stopped(a.Shard, nil)
	pause := retry.Backoff{Min: shardRetry, Max: shardRetryMax}
	var fails streak
	for {
		began := time.Now()
		err := s.runShard(ctx, a, cache)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > shardRetryMax {
			pause.Reset()
		}
		s.watches.stopped(a.Shard, err)
		wait := pause.Next()
		switch {
		case errors.Is(err, shard.ErrFenced):
			log.Warn("another worker has committed for this shard; starting over from its manifest", "error", err)
		case retry.Final(err), s.finishing.Load() && needsPerson(err), fails.tooMany(err, time.Since(began)):
			return fmt.Errorf("shard %d: %w", a.Shard, err)
		default:
			log.Error("shard stopped, starting it again", "in", wait, "error", err)
		}
		s.metrics.shardRestarts.Inc()
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// runShard opens shard, feed and follower and runs them until one fails.
func (s *Service) runShard(ctx context.Context, a group.Assignment, cache *shard.Cache) (err error) {
	head, err := s.logs.get(ctx, s.store, a.Shard)
	if err != nil {
		return err
	}
	watch, done := s.watches.open(a.Shard, head)
	defer done()
	watch.traces = s.traceShard(a.Shard)
	defer watch.traces.Close()
	watch.restored = func(d time.Duration) {
		s.watches.stopped(a.Shard, nil)
		s.metrics.restore.Observe(d.Seconds())
	}
	opts := shard.Options{
		Pipeline: s.cfg.Pipeline,
		Shard:    a.Shard, Shards: s.cfg.Shards,
		Dir:     filepath.Join(s.cfg.StateDir, strconv.Itoa(a.Shard)),
		Standby: s.standbyDir(a.Shard),
		Store:   s.rows.Store(s.store),
		Cache:   cache,
		Topics:  shard.Topics{Nodes: s.topics.Nodes, Edges: s.topics.Edges, Mirror: s.topics.Mirror},
		Window:  s.settings.window(), Bounds: s.settings.window,
		Inputs:     inputs{s.client, s.topics.Inputs(), a.Shard, s.metrics.partitions},
		Accept:     s.accepted.of(a.Shard),
		Featurizer: &s.serving,
		Writer:     writerName(),
		Drain:      func() bool { return s.draining.Load() > 0 },
		Load:       s.load,

		Compression:     parquetio.Compression(s.cfg.Window.Compression),
		CheckpointEvery: s.cfg.State.CheckpointEvery,

		Log:      s.log,
		Listener: &shardListener{service: s, assignment: a, watch: watch},
	}
	if s.topics.Mirror != "" {
		w := mirror.NewWriter(s.client, s.topics.Mirror, s.cfg.Shards, s.feeds.Pipeline)
		defer func() { err = errors.Join(err, w.Close()) }()
		opts.Mirror = w
		if watch.traces != nil {
			w.Headers = watch.traces.Headers
		}
	}
	sh, err := shard.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	feeds := s.feeds
	feeds.Bases = sh.Bases()
	in, err := feed.Open(ctx, feeds, a.Shard, sh.Next())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	watch.attach(in)
	ended := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return sh.Run(ctx, watch) })
	if s.roles.Embed {
		for _, o := range s.outlets() {
			traces := watch.traces
			if o.cursor == commitlog.Canary {
				traces = nil // a record's trace ends on the embeddings topic
			}
			g.Go(func() error { return s.follow(ctx, a.Shard, &o, traces) })
		}
	}
	g.Go(func() error { return s.removeOrphans(ctx, a.Shard) })
	g.Go(func() error { return s.compact(ctx, a.Shard) })
	err = g.Wait()
	if ended.Err() != nil {
		s.lastCheckpoint(sh, a.Shard)
	}
	return err
}

// lastCheckpointTime bounds the last checkpoint of a shard that is given up. It is less than the
// group waits for its members.
const lastCheckpointTime = 20 * time.Second

// lastCheckpoint copies the state of a shard that was stopped in good order, so that its next owner
// begins where this one ends. If it fails, the next owner reads more from the topics, and nothing
// is lost.
func (s *Service) lastCheckpoint(shard *shard.Shard, number int) {
	if s.cfg.State.CheckpointEvery <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastCheckpointTime)
	defer cancel()
	if err := shard.Checkpoint(ctx); err != nil {
		s.log.Warn("no state checkpoint at the stop; the next start continues from an older one", "shard", number,
			"error", err)
	}
}

// follow publishes the shard's embeddings to a topic. traces follow records of the shard's worker in this process, nil
// for none.
func (s *Service) follow(ctx context.Context, shard int, o *outlet, traces *telemetry.Shard) error {
	poll := pollBeside
	if !s.roles.Stream {
		poll = pollAlone
	}
	return publish.New(publish.Options{
		Shard: shard, Store: s.rows.Store(s.store), Known: s.manifests.Of(shard),
		Outlet:    o.cursor,
		Publisher: s.publisherOf(shard, o, traces),
		Topic:     func(ctx context.Context) (commitlog.SinkTopic, error) { return s.sinkTopic(ctx, o.topic) },
		Announce:  s.announcer(o),
		Model: func() *publish.Model {
			m := o.model(shard)
			if m != nil {
				m.PassedOver = max(s.passedOver.Load(), s.damaged.Load())
			}
			return traces.Model(m)
		},
		Failed: func(ctx context.Context, m *publish.Model, reason error) {
			s.publishFailed(ctx, shard, m, reason)
		},
		SaveEvery: s.saveCursorEvery,
		Wake:      s.wake.listen(shard, o.cursor), Poll: poll,
		Log: s.log.With("shard", shard, "topic", o.topic),
	}).Run(ctx)
}

const (
	// CursorEvery is how long the cursor of the embeddings may stay behind what is published. After a crash, as much is
	// published again.
	CursorEvery = 10 * time.Second
	// recentRows bounds the row objects that the process keeps in memory after it has stored them.
	recentRows = 32 << 20
)

// saveCursorEvery is CursorEvery, and 0 while somebody waits for the cursors.
func (s *Service) saveCursorEvery() time.Duration {
	if s.awaited.Load() > 0 {
		return 0
	}
	return CursorEvery
}
