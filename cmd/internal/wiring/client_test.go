package wiring

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/config"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
)

// What producers send between the two requests is not held back by a transaction.
func TestNothingIsHeldBackWhereNoTransactionIsOpen(t *testing.T) {
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cfg := config.Default()
	cfg.Shards = 1
	if err := EnsureTopics(t.Context(), c, &cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var sent atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		p := c.NewProducer()
		for p.Write(ctx, kafka.Message{Topic: cfg.Kafka.Topics.Nodes, Key: []byte("a")}) == nil {
			sent.Add(1)
		}
		_ = p.Close()
	}()
	for sent.Load() < 50 {
		readable, log, err := EndOffsetsOf(t.Context(), c, &cfg)
		if err != nil {
			t.Fatal(err)
		}
		if topic := cfg.Kafka.Topics.Nodes; log[topic][0] > readable[topic][0] {
			t.Fatalf("%d records are held back", log[topic][0]-readable[topic][0])
		}
	}
	stop()
	<-done
}
