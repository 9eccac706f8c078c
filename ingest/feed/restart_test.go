package feed_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/internal/kafkatest"
)

// TestFeedOutlivesTheBroker: a broker that goes away and comes back at the same address is no error
// for a feed.
func TestFeedOutlivesTheBroker(t *testing.T) {
	dir := t.TempDir()
	b, err := broker.Start(broker.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(b.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	e := &kafkatest.Env{
		Client: c, Shards: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Topics: ingest.Topics{Nodes: "nodes", Edges: "edges", Embeddings: "embeddings", DeadLetters: "dead-letters"},
	}
	if err := c.EnsureTopics(t.Context(), e.Topics.Specs(1)...); err != nil {
		t.Fatal(err)
	}
	e.Send(t, node("before", ""))
	cfg := config(e)
	f := open(t, cfg, 0, nil)
	if got := drain(t, f); len(got.Mutations) != 1 {
		t.Fatalf("got %+v", got.Mutations)
	}

	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for cfg.Metrics.Retries.Load() == 0 {
		if _, err := f.Next(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("while the broker is away: %v", err)
		}
	}
	o := broker.Options{Dir: dir}
	if o.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	if b, err = broker.Start(o); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	e.Send(t, node("after", ""))
	for {
		batch, err := f.Next(ctx, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Mutations) > 0 {
			if batch.Mutations[0].ID != "after" {
				t.Errorf("got %+v", batch.Mutations)
			}
			return
		}
	}
}
