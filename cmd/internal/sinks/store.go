package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/wiring"
	"giantstream/internal/retry"
	objects "giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
	"giantstream/train/generation"
)

// pollStore is the interval at which a sink looks for new manifests and generations in the store. It costs a request
// for each shard, and a few for the generations.
const pollStore = 5 * time.Second

// storeSource is the store, for a pipeline whose embeddings topic no other process can reach. It makes the records that
// followers of the commit log would publish (stream/publish), in their order, as one partition: its offsets count them,
// and the followers' cursors are in the database, with the rows. So the database gets what it would get of the topic,
// and a record that is made again after a crash changes nothing, for the reason for which it does not on the topic.
type storeSource struct {
	*sink
	store      objects.Store
	id         commitlog.Identity
	served     generation.Served
	followers  []*publish.Follower
	manifests  *prometheus.GaugeVec
	looked     atomic.Bool
	steps      retry.Failing
	shardsLeft atomic.Int64 // that had something to bring when they were looked at last
	attributes []string
}

func (s *storeSource) gauges() prometheus.Collector {
	s.manifests = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "giantstream_sink_manifest",
		Help: "The newest manifest of a shard whose rows are in the database."}, []string{"shard"})
	return s.manifests
}

func (s *storeSource) describe() (string, []any) {
	return "the store", []any{"store", s.store.URL(), "shards", s.id.Shards}
}

func (s *storeSource) close() {}

// errCanary: of a canary there is a topic alone.
var errCanary = errors.New("--canary follows sink.canary_topic, which the embedded broker has for the process of " +
	"'giantstream run' alone: without kafka.brokers a sink follows the store, and the generation that is served")

func (s *storeSource) open(ctx context.Context) (o vectordb.Options, err error) {
	if s.Canary {
		return o, errCanary
	}
	if s.store, err = wiring.OpenStore(ctx, s.Config); err != nil {
		return o, err
	}
	s.id, err = commitlog.LoadIdentity(ctx, s.store)
	if errors.Is(err, objects.ErrNotFound) {
		return o, fmt.Errorf("%s holds no pipeline yet: 'giantstream run' creates one", s.store.URL())
	}
	if err == nil {
		err = s.id.Check(ctx, s.store, wiring.IdentityOf(s.Config))
	}
	if err != nil {
		return o, err
	}
	before, err := commitlog.Continues(ctx, s.store)
	if err != nil {
		return o, err
	}
	if before != "" {
		o.OwnersBefore = []string{before}
	}
	s.attributes = slices.Sorted(slices.Values(s.Config.Sinks.Attributes))
	// No topic has a slash in its name.
	o.Topic, o.TopicID, o.Owner, o.Partitions, o.Announced = "store/"+s.id.Name, s.id.ID, s.id.ID, 1, true
	// A table is complete when all shards say so, wherever the records stood when it was made.
	o.Ends = func(context.Context) ([]int64, error) { return []int64{max(0, s.follower.Next(0))}, nil }
	return o, nil
}

// check: a store has one pipeline for good.
func (s *storeSource) check(context.Context) error { return nil }

func (s *storeSource) start(ctx context.Context, group *errgroup.Group) {
	for shard := range s.id.Shards {
		s.followers = append(s.followers, publish.New(publish.Options{Shard: shard, Store: s.store, Keeper: s,
			Publisher: s, Attributes: s.publishAttributes, Announce: s.announce,
			Model: func() *publish.Model {
				return wiring.ModelOf(&s.served, s.served.Current, shard, wiring.FormatOf(s.Config), s.attributes)
			}, Log: s.Log}))
	}
	group.Go(func() error { return s.run(ctx) })
}

// run makes records of what is committed, one shard after the other, until ctx ends or an error is final.
func (s *storeSource) run(ctx context.Context) error {
	pause := retry.Backoff{Min: 250 * time.Millisecond, Max: 30 * time.Second}
	for {
		wait, err := s.step(ctx)
		s.steps.Note(err, time.Now())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case retry.Final(err):
			return err
		case err != nil:
			wait = pause.Next()
			s.Log.Warn("the store cannot be followed, trying again", "in", wait, "error", err)
		default:
			pause.Reset()
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// step returns how long to wait until the next one.
func (s *storeSource) step(ctx context.Context) (wait time.Duration, err error) {
	if err := s.refresh(ctx); err != nil {
		return 0, err
	}
	wait = cmp.Or(s.Every, pollStore)
	left := 0
	for shard, f := range s.followers {
		did, err := f.Step(ctx)
		if err != nil {
			return 0, fmt.Errorf("shard %d: %w", shard, err)
		}
		if did {
			left++
			wait = 0
		}
		s.manifests.WithLabelValues(strconv.Itoa(shard)).Set(float64(s.position(shard).Seq))
	}
	s.shardsLeft.Store(int64(left))
	s.looked.Store(true)
	return wait, nil
}

// refresh makes current what the store says is to be served.
func (s *storeSource) refresh(ctx context.Context) error {
	began := time.Now()
	latest, err := generation.Newest(ctx, s.store)
	if err != nil {
		return err
	}
	if doc := latest.Current; doc != nil && doc.Generation != s.served.Number() {
		g, err := generation.Open(ctx, s.store, doc, s.Device)
		if err != nil {
			return err
		}
		s.served.Serve(g)
	}
	s.served.Looked(began, latest.PassedOver())
	return nil
}

// position is up to where the database has a shard.
func (s *storeSource) position(shard int) commitlog.Published {
	return commitlog.OpenKept(s, s.store, shard).Published
}

func (s *storeSource) target(ctx context.Context) (func() bool, error) {
	latest, err := generation.Newest(ctx, s.store)
	if err != nil {
		return nil, err
	}
	if latest.Current == nil {
		return nil, fmt.Errorf("%s has no generation yet, so there are no embeddings: 'giantstream run' makes one",
			s.store.URL())
	}
	cut, err := commitlog.CurrentCut(ctx, s.store, s.id.Shards)
	return func() bool {
		for shard, seq := range cut {
			if at := s.position(shard); at.Seq < seq || at.Announced < 1 || at.Announced != s.served.Number() {
				return false
			}
		}
		return true
	}, err
}

func (s *storeSource) behind() (n int64, known bool) {
	return s.shardsLeft.Load(), s.looked.Load()
}

func (s *storeSource) failing() (since time.Time, err error) { return s.steps.First() }

// Cursor implements commitlog.Keeper.
func (s *storeSource) Cursor(shard int) []byte {
	if c := s.follower.Marked(0, shard); c != "" {
		return []byte(c)
	}
	return nil
}

// Swap implements commitlog.Keeper. No other process changes the cursors while this one has the database.
func (s *storeSource) Swap(ctx context.Context, shard int, old, next []byte) error {
	if string(old) != s.follower.Marked(0, shard) {
		return objects.ErrChanged
	}
	return s.follower.Mark(ctx, 0, shard, string(next))
}

// hand gives records to the follower, with the offsets that are next. Those that the database cannot take are left out
// or refused.
func (s *storeSource) hand(ctx context.Context, n int, record func(i int) (vectordb.Record, error)) error {
	next := max(0, s.follower.Next(0))
	out := make([]vectordb.Record, 0, n)
	for i := range n {
		r, err := record(i)
		if err == nil && r.Completion == nil {
			err = acceptable(&r, s.Index)
		}
		if err != nil {
			place := fmt.Sprintf("store %s, shard %d, manifest %d, node %q", s.store.URL(), r.Shard, r.Seq, r.NodeID)
			if err := s.refuse(&malformed{place, err}); err != nil {
				return err
			}
			continue
		}
		r.Offset = next
		out = append(out, r)
		next++
	}
	return s.follower.Handle(ctx, 0, out, next)
}

// Publish implements publish.Publisher.
func (s *storeSource) Publish(ctx context.Context, records []embedding.Record) error {
	return s.hand(ctx, len(records), func(i int) (vectordb.Record, error) {
		return vectordb.Record{Record: records[i]}, nil
	})
}

func (s *storeSource) publishAttributes(ctx context.Context, all []embedding.Attributes) error {
	x, ok := s.Index.(vectordb.Attributed)
	if !ok || len(x.Attributes()) == 0 {
		return nil
	}
	return s.hand(ctx, len(all), func(i int) (vectordb.Record, error) {
		return attributesRecord(all[i], x)
	})
}

func (s *storeSource) announce(ctx context.Context, c embedding.Completion) error {
	c.Shards = s.id.Shards
	return s.hand(ctx, 1, func(int) (vectordb.Record, error) { return vectordb.Record{Completion: &c}, nil })
}
