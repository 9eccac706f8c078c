package service

import (
	"context"
	"sync"

	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
)

// outlet is a topic of embeddings. A shard has a follower for each, with a cursor of its own, so that none waits for
// another.
type outlet struct {
	cursor    commitlog.Outlet
	topic     string
	publisher *embeddingtopic.Publisher
	// model returns what a shard's embeddings are made with, nil before the first generation.
	model func(shard int) *publish.Model
}

// outlets are the topics that this pipeline publishes embeddings to.
func (s *Service) outlets() []outlet {
	all := []outlet{{commitlog.Served, s.topics.Embeddings, s.publisher, s.serving.model}}
	if s.topics.Canary != "" {
		all = append(all, outlet{commitlog.Canary, s.topics.Canary, s.canaryPublisher, s.serving.canary})
	}
	return all
}

// publisherOf returns what a follower sends records to.
func (s *Service) publisherOf(shard int, o *outlet, traces *telemetry.Shard) publish.Publisher {
	if o.cursor == commitlog.Canary {
		return countedPublisher{o.publisher, s.metrics}
	}
	return timedPublisher{o.publisher, s.metrics, traces, s.cfg.Telemetry.Traces.Exemplars,
		func() int64 { return s.cutOf(shard) }}
}

// countedPublisher counts what the canary topic acknowledges.
type countedPublisher struct {
	publisher *embeddingtopic.Publisher
	metrics   *metrics
}

// Publish implements publish.Publisher.
func (p countedPublisher) Publish(ctx context.Context, records []embedding.Record) error {
	err := p.publisher.Publish(ctx, records)
	if err == nil {
		p.metrics.canaryPublished.Add(float64(len(records)))
	}
	return err
}

// announcer returns what followers call when all of a shard is published with a generation, nil unless the
// configuration asks for it.
func (s *Service) announcer(o *outlet) func(context.Context, embedding.Completion) error {
	if !s.cfg.Sink.ControlRecords {
		return nil
	}
	return func(ctx context.Context, c embedding.Completion) error {
		ends, err := s.client.EndOffsets(ctx, o.topic)
		if err != nil {
			return err
		}
		c.Shards = s.cfg.Shards
		return o.publisher.Announce(ctx, len(ends[o.topic]), c)
	}
}

// wakeups are one signal per follower.
type wakeups struct {
	mu    sync.Mutex
	chans map[follower]chan struct{}
}

type follower struct {
	shard  int
	outlet commitlog.Outlet
}

func (w *wakeups) listen(shard int, outlet commitlog.Outlet) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chans == nil {
		w.chans = map[follower]chan struct{}{}
	}
	f := follower{shard, outlet}
	if w.chans[f] == nil {
		w.chans[f] = make(chan struct{}, 1)
	}
	return w.chans[f]
}

// shard signals one shard's followers; it never blocks.
func (w *wakeups) shard(shard int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for f, c := range w.chans {
		if f.shard == shard {
			signal(c)
		}
	}
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
