package service

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"giantstream/config"
	"giantstream/internal/race"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

const (
	buyers  = 20 // groups of items that are ordered together
	inGroup = 10
)

func bought(group, k int) string { return fmt.Sprintf("item-%02d-%d", group, k) }

// groupOrders are orders of members of a group, by chance, and of another item, if there is one.
func groupOrders(r *rand.Rand, from, to int, group func() int, also ...string) map[string]any {
	all := map[string]any{}
	for i := from; i < to; i++ {
		g, items := group(), slices.Clone(also)
		for range 2 + r.IntN(4) {
			items = append(items, bought(g, r.IntN(inGroup)))
		}
		all[fmt.Sprint("o", i)] = wholeOrder(i, items, "2026-02-01")
	}
	return all
}

// embedded returns the embeddings of nodes by the rows of the log.
func embedded(t *testing.T, s *Service, shards int, ids, texts []string) map[string]embedding.Record {
	t.Helper()
	g := s.Current().Following()
	cut, err := commitlog.CurrentCut(t.Context(), s.Store(), shards)
	if err != nil {
		t.Fatal(err)
	}
	for p := range shards {
		for row, err := range cut.Vectors(t.Context(), s.Store(), p) {
			if err != nil {
				t.Fatal(err)
			}
			g.Follow(&row.Vectors)
		}
	}
	records, err := g.EmbedNodes(ids, texts)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]embedding.Record{}
	for k, r := range records {
		all[ids[k]] = r
	}
	return all
}

// told counts the items that a process has told the shards of.
func told(t *testing.T, s *Service) (n float64) {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "giantstream_ordered_told_items_total" {
			n += f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return n
}

// Published embeddings follow the orders without a generation: an item that nobody had ordered moves to those that it
// is ordered with. Once all orders are followed, the rows of the log are those of who answers, and the topic has the
// embeddings by these rows. No generation is due for it. Of two who answer, the other goes on when one ends.
func TestPublishedEmbeddingsFollowTheOrders(t *testing.T) {
	race.SkipComputing(t)
	store := &memstore.Store{}
	shop := func(c *config.Config) {
		mapShop(c)
		c.Train.Encoder, c.Train.Epochs = "hybrid", 1
		c.Refresh.MinChanges = 0.9
	}
	s, cfg := testService(t, store, shop)
	r := rand.New(rand.NewPCG(3, 3))
	ids, texts := []string{"new"}, []string{"a thing of word3 and word4"}
	for g := range buyers {
		for k := range inGroup {
			ids = append(ids, bought(g, k))
			texts = append(texts, fmt.Sprintf("a thing of word%d and word%d", r.IntN(30), r.IntN(30)))
		}
	}
	items := map[string]any{}
	for k, id := range ids {
		items[id] = map[string]any{"id": id, "text": texts[k]}
	}
	produce(t, s, cfg.Kafka.Topics.Nodes, items)
	produce(t, s, "orders", groupOrders(r, 0, 1200, func() int { return r.IntN(buyers) }))
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b := s.Current().Doc.Graph.Orders.Behaviour; b == nil || b.Weight == 0 {
		t.Fatalf("the view of the orders is %+v: nothing can follow them", b)
	}
	serve := func() (server *Service, end func()) {
		server, err := Start(t.Context(), Options{Store: store, Roles: Roles{Serve: true},
			Log: slog.New(slog.DiscardHandler), Config: configured(t, shop, func(c *config.Config) {
				c.Kafka.Brokers = s.Client().Brokers()
			})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = server.Run(ctx) })
		return server, sync.OnceFunc(func() {
			cancel()
			running.Wait()
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	one, end := serve()
	defer end()
	other, endOther := serve()
	defer endOther()
	answering := []*Service{one, other}
	// settled waits until the topic has the embeddings of the orders.
	settled := func() map[string]embedding.Record {
		t.Helper()
		var topic map[string]embedding.Record
		eventually(t, "published embeddings are those of the orders", func() bool {
			for _, server := range answering {
				c := server.answer.Catalog
				f, follows := c.Following()
				if !follows || f.Stale+f.Moved+c.Untold() > 0 {
					return false
				}
			}
			topic = sinkTopic(t, s, cfg)
			for id, want := range embedded(t, s, cfg.Shards, ids, texts) {
				if !slices.Equal(topic[id].Vector, want.Vector) {
					return false
				}
			}
			return len(topic) == len(ids)
		})
		return topic
	}
	followed := func(orders int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d orders are followed", orders), func() bool {
			return !slices.ContainsFunc(answering, func(server *Service) bool {
				f, _ := server.answer.Catalog.Following()
				return f.Orders != orders
			})
		})
	}
	cosine := func(topic map[string]embedding.Record, a, b string) (sum float32) {
		for k, x := range topic[a].Vector {
			sum += x * topic[b].Vector[k]
		}
		return sum
	}
	near := func(topic map[string]embedding.Record, group int) (sum float32) {
		for k := range inGroup {
			sum += cosine(topic, "new", bought(group, k)) / inGroup
		}
		return sum
	}
	before := settled()
	const group = 7
	produce(t, s, "orders", groupOrders(r, 2000, 2040, func() int { return group }, "new"))
	followed(1240)
	after := settled()
	if was, is := near(before, group), near(after, group); is < was+0.2 {
		t.Errorf("the cosine of an item with those that it is ordered with is %v, before it was ordered %v", is, was)
	}
	if due, why, err := s.refresh.Due(t.Context()); err != nil || due {
		t.Errorf("a generation is due because %s, %v", why, err)
	}
	if g := s.Current(); g.Doc.Generation != 1 {
		t.Errorf("generation %d is served", g.Doc.Generation)
	}
	if d := againstTopics(t, s, cfg, store); d.Total > 0 || d.Vectors == 0 {
		t.Errorf("against the topics: %+v", d)
	}
	// Orders that are taken back leave nothing, whoever says so. The one that has told so far ends.
	if told(t, one) == 0 {
		other, end = one, endOther
	}
	end()
	answering = []*Service{other}
	gone := map[string]any{}
	for i := 2000; i < 2040; i++ {
		gone[fmt.Sprint("o", i)] = nil
	}
	produce(t, s, "orders", gone)
	followed(1200)
	again := settled()
	for _, id := range ids {
		if !slices.Equal(again[id].Vector, before[id].Vector) {
			t.Fatalf("%s has another embedding than before it was ordered with others", id)
		}
	}
	if told(t, other) == 0 {
		t.Error("the one that is left has told nothing")
	}
}
