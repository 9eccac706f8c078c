// Package kafkatest gives tests an embedded broker with the topics of a
// pipeline.
package kafkatest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"

	"github.com/segmentio/kafka-go"
)

// Env is a broker, a client and the topics.
type Env struct {
	Client *client.Client
	Topics ingest.Topics
	Shards int
	Log    *slog.Logger
}

// Start runs a broker for the time of the test.
func Start(t testing.TB, shards int) *Env {
	t.Helper()
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	e := &Env{
		Client: c, Shards: shards,
		Topics: ingest.Topics{Nodes: "nodes", Edges: "edges", Mirror: "mirror", Embeddings: "embeddings", DeadLetters: "dead-letters"},
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.EnsureTopics(ctx, e.Topics.Specs(shards)...); err != nil {
		t.Fatal(err)
	}
	return e
}

// Send produces records and waits for them.
func (e *Env) Send(t testing.TB, msgs ...kafka.Message) {
	t.Helper()
	p := e.Client.NewProducer()
	if err := p.Send(t.Context(), msgs...); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// Read returns all records of a topic, partition after partition.
func (e *Env) Read(t testing.TB, topic string) []kafka.Message {
	t.Helper()
	end, err := e.Client.EndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var out []kafka.Message
	for p, to := range end[topic] {
		for m, err := range e.Client.Range(t.Context(), topic, p, 0, to) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, m)
		}
	}
	return out
}
