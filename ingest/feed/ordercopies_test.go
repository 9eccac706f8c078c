package feed_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// Random records of orders that are added up, with equal times, come to the same orders through copies, however often
// and in which order they are copied, as on a topic that is keyed by the order.
func TestOrdersThatAreAddedUpAreTheSameThroughCopies(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			e := kafkatest.Start(t, 3)
			r := rand.New(rand.NewPCG(seed, 0))
			orders, source, keyed := e.Topic("orders"), e.Topic("source"), e.Topic("keyed")
			if err := e.Client.EnsureTopics(t.Context(), client.TopicSpec{Name: orders, Partitions: e.Shards},
				client.TopicSpec{Name: keyed, Partitions: e.Shards}, client.TopicSpec{Name: source, Partitions: 4}); err != nil {
				t.Fatal(err)
			}
			mapping := decode.OrderMapping{ID: []string{"id"}, Items: "lines[*].sku", Quantity: "lines[*].n", EventTime: "at",
				Deleted: "gone", Mode: decode.Add, MaxItems: 4}
			if seed%2 == 1 { // a record for each line
				mapping.Items, mapping.Quantity = "sku", "n"
			}
			var direct, sent []kafka.Message
			for range 300 {
				order := r.IntN(12)
				id := fmt.Sprint("o", order)
				m := orderRecord(r, id, seed%2 == 1)
				own := m
				own.Topic, own.WriterData = orders, client.WithKey(id)
				m.Topic, m.WriterData = source, client.ToPartition(order%4)
				if m.Value != nil { // those of a null say which order it is
					own.Key, m.Key = []byte(id), fmt.Append(nil, "customer ", r.IntN(5))
				}
				direct, sent = append(direct, own), append(sent, m)
			}
			e.Send(t, direct...)
			e.Send(t, sent...)
			want := ordersOf(t, e, orders, "", mapping)
			live := 0
			for _, o := range want {
				if !o.Deleted {
					live++
				}
			}
			if live < 3 {
				t.Fatalf("%d of %d orders have items", live, len(want))
			}

			copyInto(t, e, keyed, func() (*decode.Decoder, error) {
				return decode.Orders(mapping, mutation.Further, kafkatest.Limits(), 1)
			})
			if got := ordersOf(t, e, keyed, source, mapping); !reflect.DeepEqual(got, want) {
				t.Fatalf("through copies:\n%+v\nwant\n%+v", got, want)
			}
			again := e.Read(t, keyed)
			if len(again) != len(sent) {
				t.Fatalf("%d copies of %d records", len(again), len(sent))
			}
			r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			for i, m := range again[:len(again)/2] {
				again[i] = kafka.Message{Topic: keyed, Key: m.Key, Value: m.Value, Time: m.Time, Headers: m.Headers}
			}
			e.Send(t, again[:len(again)/2]...)
			if got := ordersOf(t, e, keyed, source, mapping); !reflect.DeepEqual(got, want) {
				t.Errorf("half of them copied twice:\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

// orderRecord is a random statement about an order. Those of a null value name the order in their key.
func orderRecord(r *rand.Rand, id string, lines bool) kafka.Message {
	sku := func() string { return fmt.Sprint("p", r.IntN(4)) }
	at := day.Add(time.Duration(r.IntN(4)) * time.Minute)
	m := kafka.Message{Time: at}
	stated := fmt.Sprintf(`"id":%q,"at":%q`, id, at.Format(time.RFC3339))
	line := func() string { return fmt.Sprintf(`"sku":%q,"n":%d`, sku(), 1+r.IntN(5)) }
	said := line()
	if !lines {
		said = fmt.Sprintf(`"lines":[{%s},{%s},{"sku":%q,"n":-1}]`, line(), line(), sku())
	}
	switch k := r.IntN(20); {
	case k < 14:
		m.Value = fmt.Appendf(nil, `{%s,%s}`, stated, said)
	case k < 17: // takes its items back
		m.Value = fmt.Appendf(nil, `{%s,%s,"gone":true}`, stated, said)
	case k == 17: // a dead letter
		m.Value = fmt.Appendf(nil, `{%s,"sku":{},"lines":"p1"}`, stated)
	case k == 18 && lines: // takes one item back
		m.Key = fmt.Appendf(nil, `{"id":%q,"sku":%q}`, id, sku())
	case k == 18:
		m.Key = fmt.Appendf(nil, `{"id":%q}`, id)
	default:
		m.Key = []byte(id)
	}
	return m
}

// ordersOf returns what the records of a topic, which may be copies from another, come to.
func ordersOf(t *testing.T, e *kafkatest.Env, topic, source string, mapping decode.OrderMapping) []rows.Order {
	t.Helper()
	c := config(e)
	c.Topics.Further, c.Topics.Orders = []string{topic}, topic
	c.Mapping.Orders = map[string]decode.OrderMapping{topic: mapping}
	if source != "" {
		c.Topics.Origins = map[string]string{topic: source}
	}
	g := oracle.New(false)
	for shard := range e.Shards {
		for _, m := range drain(t, open(t, c, shard, nil)).Mutations {
			g.Add(m)
		}
	}
	return g.Orders()
}
