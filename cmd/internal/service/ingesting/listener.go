package ingesting

import (
	"context"
	"time"

	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest/group"
	"giantstream/stream/commitlog"
)

// listener implements shard.Listener: it tells metrics, traces, the page, the followers and the group what happens in
// one shard.
type listener struct {
	in         *Ingest
	assignment group.Assignment
	watch      *watch
}

// Step implements shard.Listener.
func (l *listener) Step(ctx context.Context, name string) (context.Context, func(error)) {
	timed := l.in.metrics.step(name)
	ctx, traced := l.watch.traces.Step(ctx, name)
	return ctx, func(err error) { timed(); traced(err) }
}

// Committed implements shard.Listener. The traces come first: Heads wakes the shard's followers,
// which continue them. The offsets come last: Kafka's are a hint, and may only follow what everybody else knows.
func (l *listener) Committed(m *commitlog.Manifest) {
	l.watch.traces.Committed(m)
	l.in.metrics.committed(m)
	l.in.Live.Committed(m)
	l.watch.committed(m)
	l.in.accepted.committed(m.Shard)
	l.in.Heads.Committed(m)
	if err := l.assignment.CommitOffsets(m.BrokerOffsets()); err != nil {
		l.in.Log.Debug("offsets not committed to the group; the manifest has them", "shard", m.Shard, "error", err)
	}
}

// Lost implements shard.Listener.
func (l *listener) Lost(offsets int64) { l.in.metrics.feed.Lost.Add(offsets) }

// Checkpointed implements shard.Listener.
func (l *listener) Checkpointed(uploaded int64, err error) { l.in.metrics.checkpointed(uploaded, err) }

// SetAside implements shard.Listener.
func (l *listener) SetAside(string, error) { l.in.metrics.setAside.Inc() }

// restored hears that the shard has all that is committed, after so long.
func (l *listener) restored(took time.Duration) {
	l.in.Watches.Stopped(l.assignment.Shard, nil)
	l.in.metrics.restore.Observe(took.Seconds())
}

// traceShard follows records of a shard that this process opens.
func (in *Ingest) traceShard(shard int) *telemetry.Shard {
	topic := ""
	if in.Follower != nil {
		topic = in.Topics.Embeddings
	}
	return in.Traces.Shard(shard, topic)
}
