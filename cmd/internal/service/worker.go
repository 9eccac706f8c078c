package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/ingest/feed"
	"giantstream/ingest/group"
	"giantstream/ingest/mirror"
	"giantstream/sink/parquetio"
	"giantstream/stream"
	"giantstream/stream/publish"
)

// consume is this process's membership of the consumer group: a worker per
// assigned shard.
func (s *Service) consume(ctx context.Context) error {
	cache := stream.NewCache(stream.CacheBytes)
	defer cache.Release()
	return explainGroup(group.Run(ctx, group.Options{
		Client: s.client, Group: s.cfg.Group(), Protocol: s.roles.protocol(), Topics: s.topics.Inputs(),
		SessionTimeout: s.cfg.Kafka.SessionTimeout, Log: s.log,
	}, func(ctx context.Context, a group.Assignment) error { return s.work(ctx, a, cache) }))
}

// pause between attempts to run a shard that failed.
const shardRetry = 2 * time.Second

// work runs a shard and its follower until the group takes the shard away.
// A shard that fails (store or broker away for long, lost a commit race) is
// opened again from the head of its commit log: everything it had not
// committed is read again.
func (s *Service) work(ctx context.Context, a group.Assignment, cache *stream.Cache) error {
	log := s.log.With("shard", a.Shard)
	for {
		err := s.runShard(ctx, a, cache)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, stream.ErrFenced):
			log.Warn("another worker has committed for this shard; starting over from its manifest", "error", err)
		case final(err):
			return fmt.Errorf("shard %d: %w", a.Shard, err)
		default:
			log.Error("shard stopped, starting it again", "in", shardRetry, "error", err)
		}
		s.metrics.shardRestarts.Inc()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(shardRetry):
		}
	}
}

// final tells the errors that no restart mends: they need a person.
func final(err error) bool {
	for _, e := range []error{stream.ErrIdentity, stream.ErrLogGap, feed.ErrTruncated} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// runShard opens shard, feed and follower and runs them until one fails.
func (s *Service) runShard(ctx context.Context, a group.Assignment, cache *stream.Cache) (err error) {
	head, err := s.heads.get(ctx, s.store, a.Shard)
	if err != nil {
		return err
	}
	var goal map[string]int64
	if head != nil {
		goal = head.Next
	}
	watch, done := s.watches.open(a.Shard, goal)
	defer done()
	watch.restored = func(d time.Duration) { s.metrics.restore.Observe(d.Seconds()) }
	opts := stream.Options{
		Pipeline: s.cfg.Pipeline,
		Shard:    a.Shard, Shards: s.cfg.Shards,
		Dir:        filepath.Join(s.cfg.StateDir, strconv.Itoa(a.Shard)),
		Store:      s.store,
		Cache:      cache,
		Topics:     stream.Topics{Nodes: s.topics.Nodes, Edges: s.topics.Edges, Mirror: s.topics.Mirror},
		Window:     stream.Window{Changes: s.cfg.Window.Changes, Bytes: int64(s.cfg.Window.Bytes), Time: s.cfg.Window.Time},
		Featurizer: &s.serving,
		Writer:     writerName(),
		Drain:      func() bool { return s.draining.Load() > 0 },

		Compression:     parquetio.Compression(s.cfg.Window.Compression),
		CheckpointEvery: s.cfg.State.CheckpointEvery,

		Log: s.log,
		OnCommit: func(m *stream.Manifest) {
			s.heads.committed(m)
			s.metrics.committed(m)
			watch.committed(m)
			s.wake.shard(m.Shard)
			if err := a.CommitOffsets(m.Next); err != nil {
				s.log.Debug("offsets not committed to the group; the manifest has them", "shard", m.Shard, "error", err)
			}
		},
		OnCheckpoint: s.metrics.checkpointed,
	}
	if s.topics.Mirror != "" {
		w := mirror.NewWriter(s.client, s.topics.Mirror)
		defer func() { err = errors.Join(err, w.Close()) }()
		opts.Mirror = w
	}
	shard, err := stream.OpenShard(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shard.Close()) }()
	in, err := feed.Open(ctx, s.feeds, a.Shard, shard.Next())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	watch.attach(in)
	ended := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return shard.Run(ctx, watch) })
	if s.roles.Embed {
		g.Go(func() error { return s.follow(ctx, a.Shard) })
	}
	g.Go(func() error { return s.removeOrphans(ctx, a.Shard) })
	g.Go(func() error { return s.compact(ctx, a.Shard) })
	err = g.Wait()
	if ended.Err() != nil {
		s.lastCheckpoint(shard, a.Shard)
	}
	return err
}

// follow publishes the shard's embeddings.
func (s *Service) follow(ctx context.Context, shard int) error {
	poll := pollBeside
	if !s.roles.Stream {
		poll = pollAlone
	}
	return publish.New(publish.Options{
		Shard: shard, Store: s.store, Publisher: timedPublisher{s.publisher, s.metrics, func() int64 { return s.cutOf(shard) }},
		Model: func() *publish.Model { return s.serving.model(shard) },
		Wake:  s.wake.listen(shard), Poll: poll,
		Log: s.log.With("shard", shard),
	}).Run(ctx)
}

// wakeups are one signal per shard.
type wakeups struct {
	mu    sync.Mutex
	chans map[int]chan struct{}
}

func (w *wakeups) listen(shard int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.channel(shard)
}

func (w *wakeups) channel(shard int) chan struct{} {
	if w.chans == nil {
		w.chans = map[int]chan struct{}{}
	}
	if w.chans[shard] == nil {
		w.chans[shard] = make(chan struct{}, 1)
	}
	return w.chans[shard]
}

// shard signals one shard's follower; it never blocks.
func (w *wakeups) shard(shard int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	signal(w.channel(shard))
}

// all signals every follower.
func (w *wakeups) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.chans {
		signal(c)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
