package sinks

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/internal/retry"
)

// A sink whose brokers are away is not ready after a while, although its database takes all that is written.
func TestUnreadyWithoutBrokers(t *testing.T) {
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := c.EnsureTopics(ctx, client.TopicSpec{Name: "embeddings", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	source := &topicSource{topic: "embeddings", readers: []*client.Reader{{Client: c, Topic: "embeddings",
		Offset: client.Oldest, Log: slog.New(slog.DiscardHandler)}}}
	s := &sink{source: source, metrics: newMetrics(source.gauges())}
	ended := make(chan error, 1)
	go func() {
		ended <- source.readers[0].Run(ctx, func(_ context.Context, got client.Fetched) error {
			b.Close()
			return nil
		})
	}()
	var failed error
	for failed == nil && retry.Sleep(ctx, 10*time.Millisecond) == nil {
		_, failed = source.failing()
	}
	for after, want := range map[time.Duration]bool{0: false, failingFor + time.Minute: true} {
		why := s.unready(time.Now().Add(after))
		if strings.Contains(why, "the topic cannot be read since") != want {
			t.Errorf("after %v: %q", after, why)
		}
	}
	stop()
	<-ended
}

// A topic that was deleted and created again between two looks has another id.
func TestATopicOfAnotherIDIsReplaced(t *testing.T) {
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.EnsureTopics(t.Context(), client.TopicSpec{Name: "embeddings", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	known, err := c.Identify(t.Context(), "embeddings")
	if err != nil {
		t.Fatal(err)
	}
	source := &topicSource{client: c, topic: "embeddings", topicID: known["embeddings"].ID}
	if err := source.check(t.Context()); err != nil {
		t.Errorf("the topic that was opened: %v", err)
	}
	source.topicID = "of the topic before"
	if err := source.check(t.Context()); !errors.Is(err, errReplaced) {
		t.Errorf("another topic: %v", err)
	}
	source.topic = "none"
	if err := source.check(t.Context()); !errors.Is(err, errReplaced) {
		t.Errorf("a topic that is gone: %v", err)
	}
}
