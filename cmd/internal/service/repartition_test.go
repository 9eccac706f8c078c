package service

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// mapShop maps a topic of prices and one of orders beside the graph.
func mapShop(cfg *config.Config) {
	cfg.Ingest.Attributes.Fields = []string{"prices/price:number"}
	b := &cfg.Ingest.Baskets
	b.Topic, b.ID, b.Items = "orders", config.List{"order"}, "lines[*].sku"
}

// shopRecords are a graph, prices and orders as records, some of which contradict earlier ones of the same time. With
// repartitioning, the records of prices and orders have keys of others.
func shopRecords(cfg *config.Config) (records []kafka.Message) {
	at := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	add := func(topic, id string, value string) {
		records = append(records, kafka.Message{Topic: topic, Key: []byte(id), Value: []byte(value), Time: at})
	}
	for i := range nodes {
		id := nodeID(i)
		add(cfg.Kafka.Topics.Nodes, id, fmt.Sprintf(`{"id":%q,"text":"an older text"}`, id))
		add(cfg.Kafka.Topics.Nodes, id, fmt.Sprintf(`{"id":%q,"text":%q}`, id, text(i, i%4)))
		for _, step := range []int{4, 24, 28} {
			add(cfg.Kafka.Topics.Edges, id, fmt.Sprintf(`{"src":%q,"dst":%q}`, id, nodeID((i+step)%nodes)))
		}
		add(cfg.Kafka.Topics.Edges, id, fmt.Sprintf(`{"src":%q,"dst":%q,"deleted":true}`, id, nodeID((i+28)%nodes)))
		price, order := id, fmt.Sprint("o", i)
		if cfg.Ingest.Repartition {
			price, order = "", fmt.Sprint("customer ", i%7)
		}
		add("prices", price, fmt.Sprintf(`{"id":%q,"price":%d}`, id, 100-i))
		add("prices", price, fmt.Sprintf(`{"id":%q,"price":%d}`, id, i))
		add("orders", order, fmt.Sprintf(`{"order":"o%d","lines":[{"sku":%q}]}`, i, id))
		add("orders", order, fmt.Sprintf(`{"order":"o%d","lines":[{"sku":%q},{"sku":%q}]}`, i, id,
			nodeID((i+1)%nodes)))
	}
	return records
}

// drained sends records and returns the generation made of them.
func drained(t *testing.T, s *Service, records []kafka.Message) *generation.Doc {
	t.Helper()
	// A source partition per node, by what no murmur2 gives.
	w := &kafka.Writer{Addr: kafka.TCP(s.Client().Brokers()...), BatchTimeout: time.Millisecond,
		RequiredAcks: kafka.RequireAll, Balancer: &kafka.CRC32Balancer{}}
	if !s.topics.Repartitioned() {
		w.Balancer = &kafka.Murmur2Balancer{}
	}
	if err := w.WriteMessages(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	doc, _, err := s.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Topics of another number of partitions, partitioned otherwise, come to the same graph once they
// are repartitioned.
func TestRepartitionedTopicsGiveTheSameGraph(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := testService(t, store, mapShop)
	want := drained(t, s, shopRecords(cfg))
	_, wantOrders := ordersIn(t, store, cfg.Shards)

	store = &memstore.Store{}
	s, cfg = testService(t, store, mapShop, func(c *config.Config) { c.Ingest.Repartition = true })
	if end, err := s.Client().EndOffsets(t.Context(), cfg.Keyed(cfg.Kafka.Topics.Nodes)); err != nil ||
		len(end[cfg.Keyed(cfg.Kafka.Topics.Nodes)]) != cfg.Shards {
		t.Fatalf("%s ends at %v: %v", cfg.Keyed(cfg.Kafka.Topics.Nodes), end, err)
	}
	got := drained(t, s, shopRecords(cfg))
	if n, orders := ordersIn(t, store, cfg.Shards); n != nodes || orders != wantOrders {
		t.Errorf("%d orders with hash %s, want %d and %s", n, orders, nodes, wantOrders)
	}
	if got.GraphHash != want.GraphHash || !reflect.DeepEqual(got.Graph, want.Graph) {
		t.Errorf("graph %s %+v, want %s %+v", got.GraphHash, got.Graph, want.GraphHash, want.Graph)
	}

	// Copied a second time, as after a crash before the commit: nothing changes.
	var heads []int64
	for p := range cfg.Shards {
		m, err := commitlog.Head(t.Context(), store, p)
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, m.Rows)
	}
	copyAgain(t, s, cfg)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if doc, built, err := s.UpToDate(t.Context()); err != nil || built {
		t.Errorf("a second copy has changed the graph to %s (%v); rows before: %v", doc.GraphHash, err, heads)
	}
}

// copyAgain sends the records of the keyed topics to them once more, the newest first.
func copyAgain(t *testing.T, s *Service, cfg *config.Config) {
	t.Helper()
	p := s.Client().NewProducer()
	defer p.Close()
	for _, topic := range s.topics.Keyed() {
		ends, err := s.Client().EndOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for partition, end := range ends[topic] {
			for at := end - 1; at >= 0; at-- {
				for m, err := range s.Client().Range(t.Context(), topic, partition, at, at+1) {
					if err != nil {
						t.Fatal(err)
					}
					if client.Partition(m.Key, cfg.Shards) != partition {
						t.Fatalf("%s is in partition %d of %s", m.Key, partition, topic)
					}
					if err := p.Send(t.Context(), kafka.Message{Topic: topic, Key: m.Key, Value: m.Value, Time: m.Time,
						Headers: m.Headers}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
