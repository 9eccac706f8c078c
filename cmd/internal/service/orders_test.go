package service

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/verify"
)

const shopOrders = 60

// linesOf returns the items of an order.
func linesOf(i int) []string {
	return []string{nodeID(i % nodes), nodeID((i + 1) % nodes), nodeID((i + 5) % nodes)}
}

// wholeOrder is a record with all lines of an order.
func wholeOrder(i int, items []string, at string) map[string]any {
	lines := []any{}
	for _, item := range items {
		lines = append(lines, map[string]any{"sku": item, "n": 2})
	}
	return map[string]any{"order": fmt.Sprint("o", i), "lines": lines, "placed": "2026-01-01", "at": at}
}

// ordersIn returns the orders that have items, and their fingerprint.
func ordersIn(t *testing.T, store sink.Store, shards int) (live int, hash string) {
	t.Helper()
	cut, err := commitlog.CurrentCut(t.Context(), store, shards)
	if err != nil {
		t.Fatal(err)
	}
	horizon, err := cut.OrderHorizon(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	hasher := commitlog.NewGraphHasher()
	for p := range shards {
		for row, err := range cut.Orders(t.Context(), store, p, horizon) {
			if err != nil {
				t.Fatal(err)
			}
			hasher.AddOrder(&row)
			if !row.Deleted {
				live++
			}
		}
	}
	return live, hasher.Sum()
}

// Whole orders on a topic, late, corrected and deleted, and files with a line of an order in each row, in any order and
// twice, give the same rows. What the topic states is what the rows say.
func TestOrdersFromTopicAndFilesGiveTheSameRows(t *testing.T) {
	hashes := map[string]bool{}
	for _, live := range []bool{true, false} {
		store := &memstore.Store{}
		s, cfg := startService(t, Options{Store: store, Log: slog.New(slog.DiscardHandler)}, func(c *config.Config) {
			b := &c.Ingest.Baskets
			b.Topic, b.ID, b.Time, b.EventTime = "orders", config.List{"order"}, "placed", "at"
			if b.Items, b.Quantity = "sku", "n"; live {
				b.Items, b.Quantity = "lines[*].sku", "lines[*].n"
			}
			c.Refresh.MinNodes = 1 << 30
		})
		if live {
			final, former := map[string]any{}, map[string]any{}
			for i := range shopOrders {
				final[fmt.Sprint("o", i)] = wholeOrder(i, linesOf(i), "2026-02-02")
				former[fmt.Sprint("o", i)] = wholeOrder(i, linesOf(i+7), "2026-02-01")
			}
			former["gone"] = wholeOrder(-1, linesOf(3), "2026-02-01")
			former["gone"].(map[string]any)["order"] = "gone"
			produce(t, s, "orders", final)
			produce(t, s, "orders", former) // they come late
			produce(t, s, "orders", map[string]any{"gone": nil})
		} else {
			files := backfill.Sources{Orders: map[string][]backfill.Input{"orders": lineFiles(t)}}
			if _, err := wiring.Backfill(t.Context(), cfg, s.Client(), files, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, hash := ordersIn(t, store, cfg.Shards)
		if n != shopOrders {
			t.Errorf("live %t: %d orders have items, want %d", live, n, shopOrders)
		}
		hashes[hash] = true
		if d := againstTopics(t, s, cfg, store); d.Total > 0 || d.Orders != shopOrders {
			t.Errorf("against the topics: %+v", d)
		}
	}
	if len(hashes) != 1 {
		t.Errorf("the topic and the files give different orders: %v", hashes)
	}
}

// lineFiles writes the lines of all orders to two files, some of them to both.
func lineFiles(t *testing.T) []backfill.Input {
	t.Helper()
	var lines []string
	for i := range shopOrders {
		for _, item := range linesOf(i) {
			lines = append(lines, fmt.Sprintf("o%d,%s,2,2026-01-01,2026-02-02\n", i, item))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	dir := t.TempDir()
	for name, part := range map[string][]string{"a.csv": lines[:2*len(lines)/3], "b.csv": lines[len(lines)/3:]} {
		data := "order,sku,n,placed,at\n" + strings.Join(part, "")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := backfill.Files(filepath.Join(dir, "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// againstTopics compares the rows with what the topics state.
func againstTopics(t *testing.T, s *Service, cfg *config.Config, store sink.Store) *verify.Differences {
	t.Helper()
	feeds, _, err := wiring.FeedOf(cfg, s.Client(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	in := wiring.Source{Client: s.Client(), Feed: feeds}
	d, err := verify.Against(t.Context(), store, cfg.Shards, verify.Topics{Inputs: in.Feed.Topics.Stating(), Source: in,
		Undirected: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Orders alone are news: the first ones, and more of them than refresh.min_changes says, start a generation. A
// generation that knows all of them does not.
func TestOrdersStartAGeneration(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{}, func(c *config.Config) {
		mapShop(c)
		c.Ingest.Baskets.EventTime = "at"
	})
	produceGraph(t, s, cfg)
	send := func(from, to int, at string) {
		t.Helper()
		all := map[string]any{}
		for i := from; i < to; i++ {
			all[fmt.Sprint("o", i)] = wholeOrder(i, linesOf(i), at)
		}
		produce(t, s, "orders", all)
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	due := func(why string) {
		t.Helper()
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		yes, because, err := s.refresh.Due(t.Context())
		if err != nil || yes != (why != "") || !strings.Contains(because, why) {
			t.Errorf("due %t because %q, want %q, %v", yes, because, why, err)
		}
	}
	build := func() {
		t.Helper()
		if _, built, err := s.UpToDate(t.Context()); err != nil || !built {
			t.Fatalf("built %t, %v", built, err)
		}
		if _, built, err := s.UpToDate(t.Context()); err != nil || built {
			t.Errorf("and again %t, %v", built, err)
		}
	}
	send(0, 0, "")
	build()
	due("")
	send(0, shopOrders, "2026-02-01")
	due("the first orders since generation 1")
	build()
	due("")
	send(0, shopOrders/10, "2026-02-02") // of min_changes 0.2
	due("")
	send(0, shopOrders/5, "2026-02-03")
	due(fmt.Sprintf("%d changes of orders since generation 2", shopOrders/10+shopOrders/5))
	build()
}

// The role serve says what goes with what as orders come, without a new generation, and forgets what is taken back.
func TestOrdersAreAnsweredAsTheyCome(t *testing.T) {
	store, roles := &memstore.Store{}, AllRoles()
	roles.Serve = true
	s, cfg := testServiceWith(t, store, roles, listen(t), func(c *config.Config) {
		b := &c.Ingest.Baskets
		b.Topic, b.ID, b.Time, b.EventTime = "orders", config.List{"order"}, "placed", "at"
		b.Items, b.Quantity = "lines[*].sku", "lines[*].n"
		c.Refresh.MinChanges = 1 << 30 // one generation
		c.Ingest.Nodes.Attributes = config.List{"topic=label"}
	})
	all := map[string]any{}
	for i := range shopOrders {
		all[fmt.Sprint("o", i)] = wholeOrder(i, linesOf(i), "2026-02-01")
	}
	produce(t, s, "orders", all)
	produceGraph(t, s, cfg)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	// said returns what the first says of the second, as the answer has it.
	said := func(one, other string) string {
		code, body := ask(t, cfg, "GET", "/goes-with?id="+one+"&k=1000", "")
		_, of, found := strings.Cut(body, `"id":"`+other+`"`)
		if of, _, _ = strings.Cut(of, "}"); code != 200 || !found {
			return body
		}
		return of
	}
	const one, other = 3, 50 // of no order together
	if strings.Contains(said(nodeID(one), nodeID(other)), "partner") {
		t.Fatal("two nodes go with each other before they do")
	}
	for k := range 5 {
		all[fmt.Sprint("o", k)] = wholeOrder(k, []string{nodeID(one), nodeID(other)}, "2026-02-02")
	}
	produce(t, s, "orders", all)
	eventually(t, "five orders of both are answered", func() bool {
		of := said(nodeID(one), nodeID(other))
		return strings.Contains(of, `"support":5`) && strings.Contains(of, `"partner":"`+nodeID(one)+`"`)
	})
	produce(t, s, "orders", map[string]any{"o0": nil, "o1": nil})
	eventually(t, "two were deleted", func() bool {
		return strings.Contains(said(nodeID(one), nodeID(other)), `"support":3`)
	})
	if g := s.Current(); g.Doc.Generation != 1 {
		t.Errorf("generation %d is served", g.Doc.Generation)
	}
	if f, follows := s.answer.Catalog.Following(); !follows || f.Orders != shopOrders-2 || f.Solved == 0 {
		t.Errorf("following: %+v, %t", f, follows)
	}
	answersAreAsDescribed(t, cfg)
}
