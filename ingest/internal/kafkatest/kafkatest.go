// Package kafkatest gives tests a broker with the topics of a pipeline: an embedded one or, where
// GIANTSTREAM_REAL_KAFKA names one (make test-real), a real Apache Kafka, so that the same tests
// run on both.
package kafkatest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"

	"github.com/segmentio/kafka-go"
)

// Env is a broker, a client and the topics.
type Env struct {
	Client *client.Client
	Topics ingest.Topics
	// Group is a name for a consumer group.
	Group  string
	Shards int
	Log    *slog.Logger

	prefix string
}

// Start gives the test topics of its own, for as long as it runs.
func Start(t testing.TB, shards int) *Env {
	t.Helper()
	if brokers := Brokers(); brokers != nil {
		return startReal(t, brokers, shards)
	}
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
	return newEnv(t, c, shards, "")
}

// newEnv makes the topics, which names begin with prefix.
func newEnv(t testing.TB, c *client.Client, shards int, prefix string) *Env {
	t.Helper()
	e := &Env{Client: c, Shards: shards, prefix: prefix, Group: prefix + "group",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	e.Topics = ingest.Topics{Nodes: e.Topic("nodes"), Edges: e.Topic("edges"), Mirror: e.Topic("mirror"),
		Embeddings: e.Topic("embeddings"), DeadLetters: e.Topic("dead-letters")}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.EnsureTopics(ctx, e.Topics.Specs(shards)...); err != nil {
		t.Fatal(err)
	}
	return e
}

// Topic returns the name on the broker of what the test calls name.
func (e *Env) Topic(name string) string {
	if strings.HasPrefix(name, e.prefix) {
		return name
	}
	return e.prefix + name
}

// Send produces records to topics by their short names (nodes, edges, …) and waits for them.
func (e *Env) Send(t testing.TB, msgs ...kafka.Message) {
	t.Helper()
	for i := range msgs {
		msgs[i].Topic = e.Topic(msgs[i].Topic)
	}
	p := e.Client.NewProducer()
	err := p.Send(t.Context(), msgs...)
	if err == nil {
		err = p.Flush(t.Context())
	}
	if err := errors.Join(err, p.Close()); err != nil {
		t.Fatal(err)
	}
}

// Read returns all records of a topic, partition after partition.
func (e *Env) Read(t testing.TB, topic string) []kafka.Message {
	t.Helper()
	topic = e.Topic(topic)
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

// Mapping reads id, text, label, src, dst and deleted, as the configuration does by default.
func Mapping() decode.Mapping {
	return decode.Mapping{
		Nodes: decode.NodeMapping{ID: "id", Text: []string{"text"}, Class: "label", Deleted: "deleted"},
		Edges: decode.EdgeMapping{Src: "src", Dst: "dst", Deleted: "deleted", Mode: decode.Add},
	}
}

// Limits are those of the configuration by default.
func Limits() decode.Limits {
	return decode.Limits{RecordBytes: 1 << 20, TextBytes: 256 << 10, EdgesPerRecord: 10_000}
}
