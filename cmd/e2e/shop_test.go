package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/client"

	"github.com/segmentio/kafka-go"
)

// shopConfig is a pipeline of three topics that a shop has. None has a partition per shard, and no key of the orders or
// of the changes of products is an id.
const shopConfig = `
pipeline: test
shards: 3
window: {changes: 100, time: 200ms}
ingest:
  repartition: true
  nodes: {format: debezium, id: sku, text: [title], attributes: [brand]}
  attributes: {fields: ["TOPIC.prices/price:number"], id: sku, event_time: at}
  baskets:
    topic: TOPIC.orders
    id: order
    items: lines[*].sku
    quantity: lines[*].n
    time: placed
    event_time: at
    deleted: status == "cancelled"
featurize:
  projection_dim: 48
  tree: {leaf_size: 8, branching: 4}
embedding: {dim: 32}
train: {checkpoint_every: 1s}
evaluate: {probe_rates: [0.5]}
http: {listen: ""}
log: {format: json}
`

// shop is what a shop has at some time, and what its systems say of it.
type shop struct {
	random *rand.Rand
	now    int64               // in milliseconds; no two statements have the same
	titles map[string]string   // of the products that are sold
	prices map[string]float64  // of all products that ever were
	orders map[string][]string // items of an order, ascending; none if it was cancelled
}

// record is what a system sends to the topic of the pipeline with a name.
type record struct {
	topic string
	key   string
	value any // nil: a tombstone
}

func newShop() *shop {
	return &shop{random: rand.New(rand.NewPCG(7, 7)), now: 1_760_000_000_000, titles: map[string]string{},
		prices: map[string]float64{}, orders: map[string][]string{}}
}

func (s *shop) tick() int64 {
	s.now++
	return s.now
}

// product says that a product is sold under a title, or, without one, no more.
func (s *shop) product(n int, title string) []record {
	sku := fmt.Sprintf("P%04d", n)
	key := fmt.Sprintf(`{"sku":%q}`, sku)
	row := map[string]any{"sku": sku, "title": title, "brand": fmt.Sprint("brand ", n%5)}
	if title == "" {
		delete(s.titles, sku)
		return []record{{"nodes", key, map[string]any{"op": "d", "before": map[string]any{"sku": sku}, "after": nil,
			"ts_ms": s.tick()}}, {"nodes", key, nil}}
	}
	s.titles[sku] = title
	return []record{{"nodes", key, map[string]any{"op": "u", "before": nil, "after": row, "ts_ms": s.tick()}}}
}

func (s *shop) price(n int) record {
	sku, price := fmt.Sprintf("P%04d", n), float64(s.random.IntN(10_000))/100
	s.prices[sku] = price
	return record{"prices", "", map[string]any{"sku": sku, "price": price, "at": s.tick()}}
}

// order states an order of a few items that are near each other, or cancels it.
func (s *shop) order(n int, cancelled bool) record {
	id, items, lines := fmt.Sprint("o", n), map[string]bool{}, []any{}
	value := map[string]any{"order": id, "placed": "2025-10-01", "at": s.tick()}
	for range 1 + s.random.IntN(6) {
		sku := fmt.Sprintf("P%04d", n%80*8+s.random.IntN(8))
		if !items[sku] {
			items[sku] = true
			lines = append(lines, map[string]any{"sku": sku, "n": 1 + s.random.IntN(3)})
		}
	}
	s.orders[id], value["lines"] = slices.Sorted(maps.Keys(items)), lines
	if cancelled {
		s.orders[id], value["status"] = nil, "cancelled"
	}
	return record{"orders", fmt.Sprint("customer ", s.random.IntN(50)), value}
}

// opening is what the systems say first, later what they say of changes.
func (s *shop) opening() (all []record) {
	for n := range 640 {
		all = append(all, s.product(n, fmt.Sprintf("product of family %d number %d", n/8, n))...)
		all = append(all, s.price(n))
	}
	for n := range 1500 {
		all = append(all, s.order(n, false))
	}
	return all
}

func (s *shop) later() (all []record) {
	for range 600 {
		all = append(all, s.price(s.random.IntN(640)))
	}
	for n := range 300 {
		all = append(all, s.order(s.random.IntN(1500), n%5 == 0), s.order(1500+n, false))
	}
	for n := 0; n < 640; n += 16 {
		all = append(all, s.product(n, "")...)
		all = append(all, s.product(n+1, fmt.Sprintf("renamed product %d of family %d", n+1, n/8))...)
	}
	return all
}

// sendShop sends records to the topics of a pipeline, which may have any partitions.
func sendShop(t *testing.T, p place, all []record) {
	t.Helper()
	transport := &kafka.Transport{} // the shared one remembers for seconds that a topic is not there
	defer transport.CloseIdleConnections()
	w := &kafka.Writer{Addr: kafka.TCP(p.client.Brokers()...), BatchTimeout: time.Millisecond, Transport: transport,
		RequiredAcks: kafka.RequireAll, Balancer: &kafka.CRC32Balancer{}}
	messages := make([]kafka.Message, len(all))
	for i, r := range all {
		messages[i] = kafka.Message{Topic: p.topic(r.topic)}
		if r.key != "" {
			messages[i].Key = []byte(r.key)
		}
		if r.value != nil {
			value, err := json.Marshal(r.value)
			if err != nil {
				t.Fatal(err)
			}
			messages[i].Value = value
		}
	}
	if err := w.WriteMessages(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// check compares what a pipeline has with what the shop has, and the pairs of a few items with a count of the orders.
func (s *shop) check(t *testing.T, config string, got outcome) {
	t.Helper()
	titles, prices := map[string]string{}, map[string]float64{}
	for id, row := range got.rows {
		if row.Deleted {
			continue
		}
		titles[id] = row.Text
		var attributes struct{ Price float64 }
		if err := json.Unmarshal([]byte(row.Attributes), &attributes); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		prices[id] = attributes.Price
	}
	sold := maps.Clone(s.prices)
	maps.DeleteFunc(sold, func(sku string, _ float64) bool { return s.titles[sku] == "" })
	orders := map[string][]string{}
	for id, o := range got.orders {
		orders[id] = o.Items
	}
	sameMap(t, "title", titles, s.titles)
	sameMap(t, "price", prices, sold)
	sameMap(t, "order", orders, s.orders)
	for _, item := range []string{"P0003", "P0234", "P0639"} {
		s.checkPairs(t, config, item)
	}
}

// checkPairs compares the partners of an item with a plain count.
func (s *shop) checkPairs(t *testing.T, config, item string) {
	t.Helper()
	want := map[string]int{}
	for _, items := range s.orders {
		if slices.Contains(items, item) {
			for _, other := range items {
				want[other]++
			}
		}
	}
	delete(want, item)
	var node struct {
		Ordered struct {
			Partners []struct {
				ID      string
				Support int
			}
		}
	}
	succeedJSON(t, &node, "inspect", "node", item, "-c", config)
	got := map[string]int{}
	for _, p := range node.Ordered.Partners {
		got[p.ID] = p.Support
	}
	if len(want) == 0 {
		t.Errorf("%s has no partner", item)
	}
	sameMap(t, "partner of "+item, got, want)
}

// A shop's changes of products, prices and orders, on topics of its own on Apache Kafka, give the same rows, counts of
// pairs and embeddings, however often the pipeline is killed. GIANTSTREAM_SEED and GIANTSTREAM_KILLS work here, too.
func TestRealShopKilledAtRandomMoments(t *testing.T) {
	kills := envNumber(t, "GIANTSTREAM_KILLS", 5)
	seed := envNumber(t, "GIANTSTREAM_SEED", uint64(time.Now().UnixNano()))
	random := rand.New(rand.NewPCG(seed, 3))
	s := newShop()
	phases := []shopPhase{{records: s.opening()}, {records: s.later()}}
	config, p := shopPlace(t)
	t.Logf("GIANTSTREAM_SEED=%d", seed)
	for i := range phases {
		ph := &phases[i]
		sendShop(t, p, ph.records)
		calm := start(t, "run", "-c", config, "--until-idle")
		if code := calm.wait(nil, nil); code != 0 {
			t.Fatalf("undisturbed run %d: exit code %d\n%s", i, code, calm.log())
		}
		ph.timeline = calm.timeline()
	}
	p.checkLog(t)
	want := p.outcome(t)
	s.check(t, config, want)
	if want.doc.Generation != 2 || len(want.published) != len(s.titles) || len(want.refused) > 0 {
		t.Errorf("generation %d, %d of %d embeddings, %d dead letters", want.doc.Generation, len(want.published),
			len(s.titles), len(want.refused))
	}

	done := uint64(0)
	for i := uint64(0); done < kills && i < kills && !t.Failed(); i++ {
		t.Run(fmt.Sprint("pipeline ", i+1), func(t *testing.T) {
			config, p := shopPlace(t)
			for k := range phases {
				sendShop(t, p, phases[k].records)
				done += phases[k].kill(t, random, min(5, kills-done), "run", "-c", config, "--until-idle")
			}
			p.checkLog(t)
			got := p.outcome(t)
			s.check(t, config, got)
			checkSame(t, got, want)
			keyed := []string{p.topic("nodes.keyed"), p.topic("edges.keyed"), p.topic(p.topic("prices.keyed")),
				p.topic(p.topic("orders.keyed"))}
			succeed(t, "verify", "-c", config, "--against", strings.Join(keyed, ","))
		})
	}
	if !t.Failed() && done < kills {
		t.Errorf("only %d of %d kills came before the end of their run", done, kills)
	}
}

// shopPhase is what a shop's systems say at a time, and a run that reads it.
type shopPhase struct {
	records []record
	phase
}

// shopPlace is a realPlace with the topics of a shop. None has a partition per shard.
func shopPlace(t *testing.T) (config string, p place) {
	t.Helper()
	config, p = realPlace(t, shopConfig)
	var specs []client.TopicSpec
	for i, topic := range []string{"nodes", "edges", "prices", "orders"} {
		n := []int{1, 2, 4, 5}[i]
		specs = append(specs, client.TopicSpec{Name: p.topic(topic), Partitions: n, Flexible: true})
	}
	if err := p.client.EnsureTopics(t.Context(), specs...); err != nil {
		t.Fatal(err)
	}
	return config, p
}
