package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/cmd/internal/logview"
	"giantstream/config"
	"giantstream/internal/race"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/train/answer"
	"giantstream/train/nearest"
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

// answered returns the nodes that a catalog answers with the embeddings of a topic.
func answered(t *testing.T, c *answer.Catalog, topic map[string]embedding.Record) (same []string) {
	t.Helper()
	for id, r := range topic {
		index := nearest.New(len(r.Vector)) // which rounds
		change, err := index.Prepare([]string{id}, r.Vector)
		if err != nil {
			t.Fatal(err)
		}
		index.Apply(change)
		want := make([]float32, len(r.Vector))
		if v, ok := c.Embedding(id); ok && index.Vector(id, want) && slices.Equal(v, want) {
			same = append(same, id)
		}
	}
	return same
}

// Published embeddings follow the orders without a generation: an item that nobody had ordered moves to those that it
// is ordered with. Once all orders are followed, the topic has the embeddings of those who answer, over a restart and a
// second process that answers, and no generation is due for it.
func TestPublishedEmbeddingsFollowTheOrders(t *testing.T) {
	race.SkipComputing(t)
	store, roles := &memstore.Store{}, AllRoles()
	roles.Serve = true
	shop := func(c *config.Config) {
		mapShop(c)
		c.Train.Encoder, c.Train.Epochs = "hybrid", 1
		c.Refresh.MinChanges = 0.9
	}
	s, cfg := testServiceWith(t, store, roles, shop)
	r := rand.New(rand.NewPCG(3, 3))
	texts := map[string]any{"new": map[string]any{"id": "new", "text": "a thing of word3 and word4"}}
	for g := range buyers {
		for k := range inGroup {
			texts[bought(g, k)] = map[string]any{"id": bought(g, k),
				"text": fmt.Sprintf("a thing of word%d and word%d", r.IntN(30), r.IntN(30))}
		}
	}
	produce(t, s, cfg.Kafka.Topics.Nodes, texts)
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
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = s.Run(ctx) }()
	// settled waits until the topic has the embeddings of the answers.
	settled := func() map[string]embedding.Record {
		t.Helper()
		var topic map[string]embedding.Record
		eventually(t, "published embeddings are those of the answers", func() bool {
			f, follows := s.answer.Catalog.Following()
			if !follows || f.Stale+f.Moved+s.answer.Catalog.Untold() > 0 {
				return false
			}
			topic = sinkTopic(t, s, cfg)
			return len(answered(t, s.answer.Catalog, topic)) == len(texts)
		})
		return topic
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
	eventually(t, "the orders are followed", func() bool {
		f, _ := s.answer.Catalog.Following()
		return f.Orders == 1240
	})
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
	// Who follows no orders has the rows of the log, and those who begin to follow go on from there.
	other := answer.New(answer.Options{Store: store, Log: logview.Tail{Store: store}, Shards: cfg.Shards,
		Generation: s.Current})
	if _, err := other.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	if same := answered(t, other, after); len(same) != len(texts) {
		t.Errorf("%d of %d embeddings by the log are those of the topic", len(same), len(texts))
	}
	if d := againstTopics(t, s, cfg, store); d.Total > 0 || d.Vectors == 0 {
		t.Errorf("against the topics: %+v", d)
	}
	// Orders that are taken back leave nothing.
	gone := map[string]any{}
	for i := 2000; i < 2040; i++ {
		gone[fmt.Sprint("o", i)] = nil
	}
	produce(t, s, "orders", gone)
	eventually(t, "the orders are gone", func() bool {
		f, _ := s.answer.Catalog.Following()
		return f.Orders == 1200
	})
	again := settled()
	for id := range texts {
		if !slices.Equal(again[id].Vector, before[id].Vector) {
			t.Fatalf("%s has another embedding than before it was ordered with others", id)
		}
	}
}
