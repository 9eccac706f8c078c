// Package publishing is the part of the service that publishes embeddings: it follows the commit logs of shards and the
// generation that is served, and moves the cursors.
package publishing

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/membership"
	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest"
	"giantstream/ingest/embeddingtopic"
	"giantstream/ingest/group"
	"giantstream/ingest/owner"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
	"giantstream/train/generation"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

const (
	// CursorEvery is how long the cursor of the embeddings may stay behind what is published. After a crash, as much is
	// published again.
	CursorEvery = 10 * time.Second
	// groupSuffix is added to the group's name for workers that embed without streaming.
	groupSuffix = "-embed"
)

// Damage marks generations as damaged, for all processes.
type Damage interface {
	// Condemn does so for a reason, unless verify finds the generation whole.
	Condemn(ctx context.Context, number int64, reason error, verify func() error) error
}

// Publish publishes embeddings. Its exported fields are its inputs, set before Open.
type Publish struct {
	Store  sink.Store
	Shards int
	Groups membership.Membership
	Topics ingest.Topics
	// Pipeline is who publishes.
	Pipeline owner.Pipeline
	Served   *generation.Served
	Heads    *heads.Heads
	Damage   Damage
	// Format is what vectors are narrowed to, Records how a record has one.
	Format  embedding.Format
	Records embeddingtopic.Format
	// Attributes are the names of those that are published beside embeddings, ascending.
	Attributes []string
	// Embeds: this process publishes, and does not only look whether others have.
	Embeds bool
	// ControlRecords: the topic says when all of a shard is published with a generation.
	ControlRecords bool
	// Poll is how often a follower looks for manifests that it was not woken for.
	Poll time.Duration
	// Exemplars name the traces of records in the histogram of freshness.
	Exemplars bool
	Registry  prometheus.Registerer
	// Fail ends the process with an error that every further step would have.
	Fail func(error)
	Log  *slog.Logger

	// guards are by topic, of a process that publishes.
	guards    map[string]*owner.Guard
	publisher *embeddingtopic.Publisher
	// canaryPublisher is nil without a topic of new generations.
	canaryPublisher *embeddingtopic.Publisher
	metrics         *metrics
	blocked         blockage
	// awaited > 0: followers move their cursors at once.
	awaited atomic.Int32
}

// Open makes the producers. Close them when no follower runs any more.
func (p *Publish) Open() {
	p.metrics = newMetrics(p.Registry)
	p.publisher = embeddingtopic.NewPublisher(p.Groups.Client, p.Topics.Embeddings, p.Records)
	if p.Topics.Canary != "" {
		p.canaryPublisher = embeddingtopic.NewPublisher(p.Groups.Client, p.Topics.Canary, p.Records)
	}
}

// Close closes the producers.
func (p *Publish) Close() (err error) {
	for _, one := range []*embeddingtopic.Publisher{p.publisher, p.canaryPublisher} {
		if one != nil {
			err = errors.Join(err, one.Close())
		}
	}
	return err
}

// Run joins the second group, of processes that embed without streaming, and follows each shard that the group assigns.
// The group's partitions are those of the nodes topic; none of its records are read.
func (p *Publish) Run(ctx context.Context) error {
	name := p.Groups.Group + groupSuffix
	err := group.Run(ctx, group.Options{Client: p.Groups.Client, Group: name, Protocol: p.Groups.Protocol(true),
		Topics: []string{p.Topics.Nodes}, Log: p.Log, SessionTimeout: p.Groups.SessionTimeout,
	}, func(ctx context.Context, a group.Assignment) error { return p.Follow(ctx, a.Shard, nil) })
	return p.Groups.Explain(ctx, name, err)
}

// Follow publishes the embeddings of a shard to all topics, until ctx ends or a follower fails. traces follow records
// of the shard's worker in this process, nil for none.
func (p *Publish) Follow(ctx context.Context, shard int, traces *telemetry.Shard) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, o := range p.outlets() {
		followed := traces
		if o.cursor == commitlog.Canary {
			followed = nil // a record's trace ends on the embeddings topic
		}
		g.Go(func() error { return p.follower(shard, &o, followed).Run(ctx) })
	}
	return g.Wait()
}

// follower returns what publishes a shard's embeddings to a topic.
func (p *Publish) follower(shard int, o *outlet, traces *telemetry.Shard) *publish.Follower {
	return publish.New(publish.Options{
		Shard: shard, Store: p.Store, Known: p.Heads.Known(shard),
		Outlet:    o.cursor,
		Publisher: p.publisherOf(shard, o, traces),
		Attributes: func(ctx context.Context, all []embedding.Attributes) error {
			err := o.publisher.PublishAttributes(ctx, all)
			if err == nil {
				p.metrics.attributes.Add(float64(len(all)))
			}
			return err
		},
		Topic:    func(ctx context.Context) (commitlog.SinkTopic, error) { return p.sinkTopic(ctx, o.topic) },
		Announce: p.announcer(o),
		Model:    func() *publish.Model { return traces.Model(o.model(shard)) },
		Failed: func(ctx context.Context, m *publish.Model, reason error) {
			p.failed(ctx, shard, m, reason)
		},
		SaveEvery: p.saveCursorEvery,
		Wake:      p.Heads.Listen(shard, o.cursor), Poll: p.Poll,
		Log: p.Log.With("topic", o.topic),
	})
}

// Hurry makes followers move their cursors at once, until the returned function is called.
func (p *Publish) Hurry() (enough func()) {
	p.awaited.Add(1)
	p.Heads.WakeAll()
	return func() { p.awaited.Add(-1) }
}

// saveCursorEvery is CursorEvery, and 0 while Hurry says so.
func (p *Publish) saveCursorEvery() time.Duration {
	if p.awaited.Load() > 0 {
		return 0
	}
	return CursorEvery
}

// sinkTopic looks at a topic of embeddings.
func (p *Publish) sinkTopic(ctx context.Context, name string) (commitlog.SinkTopic, error) {
	topic := commitlog.SinkTopic{Name: name}
	ids, err := p.Groups.Client.Identify(ctx, topic.Name)
	if err != nil {
		return topic, err
	}
	topic.ID = ids[topic.Name].ID
	if err := p.checkOwner(ctx, topic); err != nil {
		return topic, err
	}
	// The end is read last: it is then not below the first offset.
	for _, one := range []struct {
		sum  *int64
		read func(context.Context, ...string) (map[string][]int64, error)
	}{{&topic.First, p.Groups.Client.FirstOffsets}, {&topic.End, p.Groups.Client.EndOffsets}} {
		offsets, err := one.read(ctx, topic.Name)
		if err != nil {
			return topic, err
		}
		for _, offset := range offsets[topic.Name] {
			*one.sum += offset
		}
	}
	return topic, nil
}
