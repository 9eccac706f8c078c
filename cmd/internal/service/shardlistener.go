package service

import (
	"context"

	"giantstream/ingest/group"
	"giantstream/stream/commitlog"
)

// shardListener tells the parts of the service what happens in one shard: its metrics, its traces,
// the pages, its followers and the consumer group.
type shardListener struct {
	service    *Service
	assignment group.Assignment
	watch      *watch
}

// Step implements shard.Listener.
func (l *shardListener) Step(ctx context.Context, name string) (context.Context, func(error)) {
	timed := l.service.metrics.step(name)
	ctx, traced := l.watch.traces.Step(ctx, name)
	return ctx, func(err error) { timed(); traced(err) }
}

// Committed implements shard.Listener. The traces come first: what follows wakes the shard's
// followers, which continue them. The offsets come last: Kafka's are a hint, and may only follow
// what everybody else knows.
func (l *shardListener) Committed(m *commitlog.Manifest) {
	s := l.service
	l.watch.traces.Committed(m)
	s.logs.committed(m)
	s.manifests.Add(m)
	s.metrics.committed(m)
	s.live.Committed(m)
	l.watch.committed(m)
	s.accepted.committed(m.Shard)
	s.wake.shard(m.Shard)
	if err := l.assignment.CommitOffsets(m.BrokerOffsets()); err != nil {
		s.log.Debug("offsets not committed to the group; the manifest has them", "shard", m.Shard, "error", err)
	}
}

// Superseded implements shard.Listener.
func (l *shardListener) Superseded(statements int64) {
	l.service.metrics.superseded.Add(float64(statements))
}

// Lost implements shard.Listener.
func (l *shardListener) Lost(offsets int64) { l.service.metrics.feed.Lost.Add(offsets) }

// Checkpointed implements shard.Listener.
func (l *shardListener) Checkpointed(uploaded int64, err error) {
	l.service.metrics.checkpointed(uploaded, err)
}

// SetAside implements shard.Listener.
func (l *shardListener) SetAside(string, error) { l.service.metrics.setAside.Inc() }
