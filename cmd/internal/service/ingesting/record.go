package ingesting

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/service/process"
	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest/feed"
	"giantstream/ingest/group"
	"giantstream/ingest/mirror"
	"giantstream/sink/parquetio"
	"giantstream/stream/shard"
)

// The path of a record, from the topic to a manifest, is that of a shard: runShard opens the shard where its commit log
// ends and the feed where the shard goes on. Shard.Run then takes batch after batch of mutations from the feed (watch
// notes how far that is), applies it to the state, and commits the window if it is full, of which the listener hears.

// runShard streams a shard until something fails or ctx ends.
func (in *Ingest) runShard(ctx context.Context, a group.Assignment) (err error) {
	head, err := in.Heads.Newest(ctx, a.Shard)
	if err != nil {
		return err
	}
	watch, gone := in.Watches.Open(a.Shard, head)
	defer gone()
	watch.traces = in.traceShard(a.Shard)
	defer watch.traces.Close()
	l := &listener{in: in, assignment: a, watch: watch}
	watch.restored = l.restored
	m := in.openMirror(watch.traces)
	if m != nil {
		defer func() { err = errors.Join(err, m.Close()) }()
	}
	sh, err := in.openShard(ctx, l, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	records, err := in.openFeed(ctx, a.Shard, sh)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	watch.attach(records)
	ended := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return sh.Run(ctx, watch) })
	if in.Follower != nil {
		g.Go(func() error { return in.Follower.Follow(ctx, a.Shard, watch.traces) })
	}
	g.Go(func() error { return in.upkeep.Run(ctx, a.Shard) })
	err = g.Wait()
	if ended.Err() != nil {
		in.lastCheckpoint(sh, a.Shard)
	}
	return err
}

// openMirror opens what carries edges to the shards of their far ends, nil for a directed graph.
func (in *Ingest) openMirror(traces *telemetry.Shard) *mirror.Writer {
	if in.Topics.Mirror == "" {
		return nil
	}
	w := mirror.NewWriter(in.Groups.Client, in.Topics.Mirror, in.Config.Shards, in.Feeds.Pipeline)
	if traces != nil {
		w.Headers = traces.Headers
	}
	return w
}

// openShard restores a shard to the newest manifest of its commit log, or to what of its state is here.
func (in *Ingest) openShard(ctx context.Context, l *listener, m *mirror.Writer) (*shard.Shard, error) {
	number := l.assignment.Shard
	o := shard.Options{
		Pipeline: in.Config.Pipeline, Shard: number, Shards: in.Config.Shards,
		Dir:     filepath.Join(in.Config.StateDir, strconv.Itoa(number)),
		Standby: in.Standbys.DirOf(number),
		Store:   in.Store,
		Cache:   in.cache,
		Topics: shard.Topics{Nodes: in.Topics.Nodes, Edges: in.Topics.Edges, Further: in.Topics.Further,
			Mirror: in.Topics.Mirror},
		Window:     in.window(),
		Bounds:     in.window,
		Inputs:     inputs{in.Groups.Client, in.Topics.Inputs(), number, in.metrics.partitions},
		Accept:     in.accepted.acceptedFor(number),
		Featurizer: in.Features,
		Writer:     process.Name(),
		Drain:      in.drains,
		Load:       in.Load,

		KeepOrders:      in.Config.Ingest.Baskets.Keep,
		Compression:     parquetio.Compression(in.Config.Window.Compression),
		CheckpointEvery: in.Config.State.CheckpointEvery,

		Log:      in.Log,
		Listener: l,
	}
	if m != nil {
		o.Mirror = m
	}
	return shard.Open(ctx, o)
}

// openFeed begins to read a shard's partitions of the topics where the shard goes on.
func (in *Ingest) openFeed(ctx context.Context, number int, sh *shard.Shard) (*feed.Feed, error) {
	feeds := in.Feeds
	feeds.Bases = sh.Bases()
	return feed.Open(ctx, feeds, number, sh.Next())
}

// window returns the bounds of windows that are in force.
func (in *Ingest) window() shard.Window {
	w := in.Settings.Get().Window
	return shard.Window{Changes: w.Changes, Bytes: int64(w.Bytes), Time: w.Time}
}

// bounds returns the bounds of records that are in force.
func (in *Ingest) bounds() feed.Bounds {
	c := in.Settings.Get().Ingest
	return feed.Bounds{TextBytes: int(c.Limits.TextBytes), EdgesPerRecord: c.Limits.EdgesPerRecord,
		MaxFuture: c.MaxFuture}
}

func (in *Ingest) drains() bool { return in.draining.Load() > 0 }

// lastCheckpointTime bounds the last checkpoint of a shard that is given up. It is less than the
// group waits for its members.
const lastCheckpointTime = 20 * time.Second

// lastCheckpoint copies the state of a shard that was stopped in good order, so that its next owner
// begins where this one ends. If it fails, the next owner reads more from the topics, and nothing
// is lost.
func (in *Ingest) lastCheckpoint(sh *shard.Shard, number int) {
	if in.Config.State.CheckpointEvery <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastCheckpointTime)
	defer cancel()
	if err := sh.Checkpoint(ctx); err != nil {
		in.Log.Warn("no state checkpoint at the stop; the next start continues from an older one", "shard", number,
			"error", err)
	}
}
