package sinks_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/sinks"
	"giantstream/config"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/vectordb/vectordbtest"
)

// A sink of the canary topic follows that topic alone, and remembers which it is.
func TestCanaryTopic(t *testing.T) {
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	cfg := config.Default()
	cfg.HTTP.Listen = ""
	db := vectordbtest.NewMemory()
	run := func(canary bool) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return sinks.Run(ctx, sinks.Options{Config: &cfg, Index: db.Process(), Client: c, Canary: canary,
			UntilCaughtUp: true, Every: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	}
	if err := run(true); err == nil || !strings.Contains(err.Error(), "sink.canary_topic") {
		t.Errorf("without such a topic: %v", err)
	}
	cfg.Sink.CanaryTopic = "next"
	for i, name := range []string{cfg.Kafka.Topics.Embeddings, cfg.Sink.CanaryTopic} {
		if err := c.EnsureTopics(t.Context(), client.TopicSpec{Name: name, Partitions: 1, Compacted: true}); err != nil {
			t.Fatal(err)
		}
		p := &pipeline{world: &world{client: c}, cfg: &config.Config{}, sent: []int{0},
			topic: vectordbtest.NewTopic(rand.New(rand.NewPCG(uint64(i), 1)), 1, true, nil)}
		p.cfg.Kafka.Topics.Embeddings = name
		for range 5 {
			p.topic.Grow()
		}
		p.topic.Settle()
		p.publish(t, embeddingtopic.JSON)
		if name != cfg.Sink.CanaryTopic {
			continue
		}
		if err := run(true); err != nil {
			t.Fatal(err)
		}
		want, _ := p.topic.Compacted(target)
		if diff := vectordbtest.Differ(db.Rows(), want); diff != "" {
			t.Error(diff)
		}
	}
	if err := run(false); err == nil || !strings.Contains(err.Error(), "follows the topic") {
		t.Errorf("the sink goes on with another topic: %v", err)
	}
}
