// Package client is the pipeline's way to Kafka: one set of connections with
// its TLS and SASL settings, topic administration, a fetch that hides nothing,
// and a producer that can be flushed.
//
//	c, err := client.New(client.Options{Brokers: []string{"localhost:9092"}})
//	err = c.EnsureTopics(ctx, client.TopicSpec{Name: "nodes", Partitions: 8})
//	p := c.NewProducer()
//	err = p.Send(ctx, kafka.Message{Topic: "nodes", Key: key, Value: value})
//	err = p.Flush(ctx) // now every record is on all in-sync replicas
//
// It is a thin layer over github.com/segmentio/kafka-go. That library has no
// working idempotent or transactional producer, so delivery is at least once: readers
// must not mind records that come twice (the graph does not: see
// stream.Version). Records of aborted transactions of other producers are
// read like any other; transaction markers are skipped.
package client
