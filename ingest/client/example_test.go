package client_test

import (
	"context"

	"giantstream/ingest/client"

	"github.com/segmentio/kafka-go"
)

func Example() {
	ctx := context.Background()
	c, err := client.New(client.Options{Brokers: []string{"localhost:9092"}})
	if err != nil {
		return
	}
	defer c.Close()
	if err := c.EnsureTopics(ctx, client.TopicSpec{Name: "nodes", Partitions: 8}); err != nil {
		return
	}
	p := c.NewProducer()
	defer p.Close()
	if err := p.Send(ctx, kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte(`{"id":"a"}`)}); err != nil {
		return
	}
	if err := p.Flush(ctx); err != nil {
		return
	}
	// Now every record is on all in-sync replicas.
}
