package service

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

func withAttributes(c *config.Config) {
	c.Ingest.Nodes.Attributes = config.List{"brand", "list_price:number=list.price"}
	c.Ingest.Attributes.Fields = config.List{"prices/price:number", "stock/stock:number=quantity"}
}

// attributesOf returns the attributes of the newest rows, and the fingerprint of the graph.
func attributesOf(t *testing.T, store sink.Store, shards int) (attributes map[string]string, hash string) {
	t.Helper()
	cut, err := commitlog.CurrentCut(t.Context(), store, shards)
	if err != nil {
		t.Fatal(err)
	}
	attributes = map[string]string{}
	hasher := commitlog.NewGraphHasher()
	for p := range shards {
		for row, err := range cut.Facts(t.Context(), store, p) {
			if err != nil {
				t.Fatal(err)
			}
			attributes[row.NodeID] = row.Attributes
			hasher.Add(&row.Row)
		}
	}
	return attributes, hasher.Sum()
}

// Prices, stock and node records that change nothing but attributes show in rows with the next window, and publish no
// embedding. A backfill of the same gives the same rows.
func TestAttributesEncodeNothing(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := startService(t, Options{Store: store, Log: slog.New(slog.DiscardHandler)}, withAttributes)
	produceGraph(t, s, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = s.Run(ctx) }()
	eventually(t, "every node has an embedding", func() bool { return len(sinkTopic(t, s, cfg)) == nodes })
	published := len(recordsOf(t, s, cfg.Kafka.Topics.Embeddings))

	prices, stock := map[string]any{}, map[string]any{}
	for i := range nodes {
		prices[nodeID(i)] = map[string]any{"id": nodeID(i), "price": float64(i) + 0.5}
		stock[nodeID(i)] = map[string]any{"id": nodeID(i), "quantity": strconv.Itoa(i)}
	}
	produce(t, s, "prices", prices)
	produce(t, s, "stock", stock)
	want := func(i int) string { return fmt.Sprintf(`{"price":%v,"stock":%d}`, float64(i)+0.5, i) }
	eventually(t, "every row has price and stock", func() bool {
		got, _ := attributesOf(t, store, cfg.Shards)
		for i := range nodes {
			if got[nodeID(i)] != want(i) {
				return false
			}
		}
		return true
	})
	produce(t, s, "stock", map[string]any{nodeID(0): nil})
	eventually(t, "a null value takes the attributes of its input away", func() bool {
		got, _ := attributesOf(t, store, cfg.Shards)
		return got[nodeID(0)] == `{"price":0.5}`
	})
	// The record of a node that says the same text again, later and with attributes.
	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{nodeID(1): map[string]any{"id": nodeID(1),
		"text": text(1, 1), "label": "1", "brand": "b1", "list": map[string]any{"price": 9.9}}})
	eventually(t, "the row has the attributes of the record", func() bool {
		got, _ := attributesOf(t, store, cfg.Shards)
		return got[nodeID(1)] == `{"brand":"b1","list_price":9.9,"price":1.5,"stock":1}`
	})
	if got := len(recordsOf(t, s, cfg.Kafka.Topics.Embeddings)); got != published {
		t.Errorf("%d embeddings were published for attributes", got-published)
	}
	var alone int64
	for p := range cfg.Shards {
		for m, err := range commitlog.Manifests(t.Context(), store, p, 0) {
			if err != nil {
				t.Fatal(err)
			}
			alone += m.RowsOf(rows.NodeAttributes.Name)
		}
	}
	if alone < int64(nodes) {
		t.Errorf("%d rows of attributes alone", alone)
	}
	if d := againstTopics(t, s, cfg, store); d.Total > 0 || d.Nodes != nodes {
		t.Errorf("against the topics: %+v", d)
	}
}

// Files of nodes and of prices give the rows that the same records on the topics give.
func TestABackfillOfAttributesGivesTheSameRows(t *testing.T) {
	dir := t.TempDir()
	var products, prices strings.Builder
	products.WriteString("sku,title,brand,price,at\n")
	prices.WriteString("sku,price,at\n")
	for i := range nodes {
		fmt.Fprintf(&products, "%s,%s,b%d,1.0,2026-01-01\n", nodeID(i), text(i, i%4), i%3)
		for day := range 5 {
			fmt.Fprintf(&prices, "%s,%d.%02d,2026-02-%02d\n", nodeID(i), i, day, day+1)
		}
	}
	files := backfill.Sources{Attributes: map[string][]backfill.Input{}}
	for name, data := range map[string]string{"products.csv": products.String(), "prices.csv": prices.String()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := backfill.Files(path)
		if err != nil {
			t.Fatal(err)
		}
		if name == "products.csv" {
			files.Nodes = in
		} else {
			files.Attributes["prices"] = in
		}
	}
	mapped := func(c *config.Config) {
		c.Ingest.Nodes.ID, c.Ingest.Nodes.Text = "sku", config.List{"title"}
		c.Ingest.Nodes.EventTime, c.Ingest.Attributes.EventTime = "at", "at"
		c.Ingest.Nodes.Attributes, c.Ingest.Attributes.ID = config.List{"brand", "list:number=price"}, "sku"
		c.Ingest.Attributes.Fields = config.List{"prices/price:number"}
	}
	hashes := map[string]bool{}
	for _, live := range []bool{false, true} {
		store := &memstore.Store{}
		s, cfg := startService(t, Options{Store: store, Log: slog.New(slog.DiscardHandler)}, mapped,
			func(c *config.Config) { c.Refresh.MinNodes = 1 << 30 })
		if live {
			for day := 4; day >= 0; day-- { // prices before their nodes, and the last day first
				records := map[string]any{}
				for i := range nodes {
					records[nodeID(i)] = map[string]any{"sku": nodeID(i), "price": fmt.Sprintf("%d.%02d", i, day),
						"at": fmt.Sprintf("2026-02-%02d", day+1)}
				}
				produce(t, s, "prices", records)
			}
			records := map[string]any{}
			for i := range nodes {
				records[nodeID(i)] = map[string]any{"sku": nodeID(i), "title": text(i, i%4), "brand": fmt.Sprintf("b%d", i%3),
					"price": 1, "at": "2026-01-01"}
			}
			produce(t, s, cfg.Kafka.Topics.Nodes, records)
		} else if _, err := wiring.Backfill(t.Context(), cfg, s.Client(), files, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, hash := attributesOf(t, store, cfg.Shards)
		if want := `{"brand":"b1","list":1,"price":1.04}`; got[nodeID(1)] != want {
			t.Errorf("live %t: attributes %s, want %s", live, got[nodeID(1)], want)
		}
		hashes[hash] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d different graphs", len(hashes))
	}
}

// Which window has committed the attributes of a node makes no difference to a generation: not to its fingerprint of
// the graph, and not to the event times of its embeddings.
func TestAGenerationIsNoFunctionOfWindows(t *testing.T) {
	var hashes []string
	var times []map[string]int64
	for _, apart := range []bool{false, true} {
		store := &memstore.Store{}
		s, cfg := testService(t, store, withAttributes)
		p := s.Client().NewProducer()
		defer p.Close() //nolint:errcheck // Flush reports what matters
		send := func(topic string, i int, at int64, value string) {
			m := kafka.Message{Topic: topic, Key: []byte(nodeID(i)), Value: []byte(value), Time: time.Unix(at, 0)}
			if err := p.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		for i := range nodes {
			send(cfg.Kafka.Topics.Nodes, i, 1e9, fmt.Sprintf(`{"id":%q,"text":%q}`, nodeID(i), text(i, i%4)))
			send(cfg.Kafka.Topics.Edges, i, 1e9, fmt.Sprintf(`{"src":%q,"dst":%q}`, nodeID(i), nodeID((i+4)%nodes)))
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if apart {
			if err := s.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range nodes / 2 {
			send("prices", i, 1e9+1, fmt.Sprintf(`{"id":%q,"price":%d}`, nodeID(i), i))
			send(cfg.Kafka.Topics.Nodes, i+nodes/2, 1e9+2, fmt.Sprintf(`{"id":%q,"text":%q,"brand":"b"}`,
				nodeID(i+nodes/2), text(i+nodes/2, (i+nodes/2)%4)))
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		doc, _, err := s.UpToDate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]int64{}
		for _, part := range doc.Embeddings {
			for r, err := range embedding.ReadParquet(t.Context(), store, part.Ref()) {
				if err != nil {
					t.Fatal(err)
				}
				at[r.NodeID] = r.EventTime
			}
		}
		hashes, times = append(hashes, doc.GraphHash), append(times, at)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("graph %s, and %s with attributes in a window of their own", hashes[0], hashes[1])
	}
	if !maps.Equal(times[0], times[1]) || len(times[0]) != nodes {
		t.Errorf("event times %v, and %v with attributes in a window of their own", times[0], times[1])
	}
}
