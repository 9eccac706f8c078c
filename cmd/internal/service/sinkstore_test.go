package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/service/servicetest"
	"giantstream/cmd/internal/sinks"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/vectordbtest"
	"giantstream/stream/commitlog"
)

// killed is a database whose process ends after some writes, of which the last may have had its effect or not.
type killed struct {
	vectordb.Index
	vectordb.Attributed
	writes int
	late   bool
}

func (k *killed) Apply(ctx context.Context, b vectordb.Batch) error {
	k.writes--
	if k.writes >= 0 {
		return k.Index.Apply(ctx, b)
	}
	if k.late {
		if err := k.Index.Apply(ctx, b); err != nil {
			return err
		}
	}
	return errKilled
}

// errKilled ends a process.
const errKilled = retry.FinalError("killed")

// followed is a pipeline, with a sink of its topic and one of its store.
type followed struct {
	cfg, alone       config.Config // of the pipeline, and as a process that cannot reach its brokers has it
	client           *client.Client
	store            sink.Store
	ofTopic, ofStore *vectordbtest.Memory
}

func newFollowed(t *testing.T) *followed {
	t.Helper()
	brokers, _ := testBroker(t)
	f := &followed{cfg: config.Default(), ofTopic: vectordbtest.NewMemory(), ofStore: vectordbtest.NewMemory()}
	c := &f.cfg
	c.Pipeline, c.Shards, c.HTTP.Listen = "shop", 2, ""
	c.Store, c.StateDir = wiring.DirURL(t.TempDir()), filepath.Join(t.TempDir(), "state")
	c.Kafka.Brokers, c.Kafka.SessionTimeout, c.Window.Time = brokers, time.Second, 20*time.Millisecond
	c.Train.Encoder, c.Evaluate.HoldoutEdges, c.Embedding.Dim, c.Refresh.MinNodes = "linear", 0, 4, 2
	c.Refresh.Space, c.Sink.ControlRecords, c.Sink.EmbeddingType = "new", true, "int8"
	for _, a := range vectordbtest.Attributes {
		c.Ingest.Nodes.Attributes = append(c.Ingest.Nodes.Attributes, a.Name+":"+string(a.Type))
		c.Sinks.Attributes = append(c.Sinks.Attributes, a.Name)
	}
	c.Sinks.Batch = 3
	f.alone = f.cfg
	f.alone.Kafka.Brokers = []string{config.EmbeddedBroker}
	var err error
	if f.store, err = wiring.OpenStore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if f.client, err = client.New(client.Options{Brokers: brokers}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.client.Close)
	if err := wiring.EnsureTopics(t.Context(), f.client, c); err != nil {
		t.Fatal(err)
	}
	return f
}

// send states n items, with a price and with links; every seventh is deleted.
func (f *followed) send(t *testing.T, rnd *rand.Rand, n int) {
	t.Helper()
	p := f.client.NewProducer()
	defer p.Close()
	put := func(topic, key, value string) {
		if err := p.Send(t.Context(), kafka.Message{Topic: topic, Key: []byte(key), Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		i := rnd.IntN(60)
		id := fmt.Sprint("n", i)
		value := fmt.Sprintf(`{"id":%q,"text":"item %d of shelf %d","price":%d,"tags":["a","b%d"]}`, id,
			rnd.IntN(90), i%5, rnd.IntN(100), rnd.IntN(3))
		if rnd.IntN(7) == 0 {
			value = ""
		}
		put(f.cfg.Kafka.Topics.Nodes, id, value)
		put(f.cfg.Kafka.Topics.Edges, id, fmt.Sprintf(`{"src":%q,"dst":"n%d"}`, id, (i+5)%60))
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// publish brings everything to the topic, with a new generation if one is asked for, and returns the generation.
func (f *followed) publish(t *testing.T, build bool) int64 {
	t.Helper()
	f.cfg.Refresh.MinChanges = 1e6
	s, err := Start(t.Context(), Options{Config: &f.cfg, Store: f.store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if build {
		finish(t, []*Service{s})
	} else if err := errors.Join(s.Drain(t.Context()), s.WaitPublished(t.Context())); err != nil {
		t.Fatal(err)
	}
	n := s.served.Number()
	servicetest.Eventually(t, "the topic says that the generation is complete", func() bool {
		for shard := range f.cfg.Shards {
			at, err := commitlog.LoadPublished(t.Context(), f.store, shard)
			if err != nil || at.Announced != n {
				return false
			}
		}
		return true
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func (f *followed) follow(ctx context.Context, cfg *config.Config, index vectordb.Index) error {
	o := sinks.Options{Config: cfg, Index: index, UntilCaughtUp: true, Every: time.Millisecond,
		Log: slog.New(slog.DiscardHandler)}
	if cfg == &f.cfg {
		o.Client = f.client
	}
	return sinks.Run(ctx, o)
}

// same lets both sinks catch up, that of the store with many deaths, and compares what their readers see.
func (f *followed) same(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(f.follow(ctx, &f.cfg, f.ofTopic.Process()), ctx.Err()); err != nil {
		t.Fatal(err)
	}
	if len(f.ofTopic.Rows()) == 0 {
		t.Fatal("the topic has no embeddings")
	}
	first := f.ofStore.Rows() == nil
	for kills := 0; ; kills++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		process := f.ofStore.Process()
		k := &killed{Index: process, Attributed: process.(vectordb.Attributed), writes: rnd.IntN(8 + kills),
			late: rnd.IntN(2) == 0}
		err := f.follow(ctx, &f.alone, k)
		dead := k.writes < 0
		if mixed := vectordbtest.Mixed(f.ofStore.Rows()); mixed != "" {
			t.Fatal(mixed)
		}
		if rows := f.ofStore.Rows(); first && rows != nil {
			if diff := vectordbtest.Differ(rows, f.ofTopic.Rows()); diff != "" {
				t.Fatalf("readers see a part of the first generation:\n%s", diff)
			}
		}
		cancel()
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if !dead {
			break
		}
	}
	if diff := vectordbtest.Differ(f.ofStore.Rows(), f.ofTopic.Rows()); diff != "" {
		t.Fatalf("the store leads to another table than the topic:\n%s", diff)
	}
}

// A sink that follows the store shows what one that follows the topic does: after the first generation, with changes
// and deletions since its cut, and after another generation in another space. It is killed at any write on the way.
func TestSinkOfAStore(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			f := newFollowed(t)
			f.send(t, rnd, 100)
			if n := f.publish(t, true); n != 1 {
				t.Fatalf("generation %d", n)
			}
			f.same(t, rnd)
			f.send(t, rnd, 4)
			if n := f.publish(t, false); n != 1 {
				t.Fatalf("generation %d of few changes", n)
			}
			f.same(t, rnd)
			f.send(t, rnd, 200)
			if n := f.publish(t, true); n != 2 {
				t.Fatalf("generation %d of many changes", n)
			}
			f.same(t, rnd)
		})
	}
}
