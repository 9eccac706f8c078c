package service

import (
	"fmt"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
)

// Rollback, promote and pin while the catalog changes: whoever reads the topic to its end holds vectors of the
// generation that is served, of all nodes, and none of another.
func TestChoicesAreFollowedUnderChanges(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := testService(t, store, func(c *config.Config) { c.Refresh.Keep = 3 })
	choose := generation.Chooser{Store: store, Now: time.Now}
	produceGraph(t, s, cfg)
	ids := map[string]bool{}
	for id := range settled(t, s, cfg, 1) {
		ids[id] = true
	}
	step := 0
	change := func() {
		step++
		id := fmt.Sprintf("new%d", step)
		ids[id] = true
		produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{
			id:        map[string]any{"id": id, "text": text(step, step%4)},
			nodeID(0): map[string]any{"id": nodeID(0), "text": text(step+7, step%4)},
		})
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, served int64, records map[string]embedding.Record) {
		t.Helper()
		for id, r := range records {
			if r.Generation != served {
				t.Fatalf("%s: %s is of generation %d, want %d", what, id, r.Generation, served)
			}
		}
		for id := range ids {
			if _, ok := records[id]; !ok {
				t.Fatalf("%s: %s is missing", what, id)
			}
		}
	}
	change()
	check("generation 2", 2, settled(t, s, cfg, 2))
	change()
	check("generation 3", 3, settled(t, s, cfg, 3))
	for _, c := range []struct {
		what   string
		decide func() (generation.Decision, error)
		served int64
	}{
		{"rollback", func() (generation.Decision, error) { return choose.Rollback(t.Context()) }, 2},
		{"rollback again", func() (generation.Decision, error) { return choose.Rollback(t.Context()) }, 1},
		{"promote 3", func() (generation.Decision, error) { return choose.Promote(t.Context(), 3) }, 3},
		{"pin 1", func() (generation.Decision, error) { return choose.Pin(t.Context(), 1) }, 1},
		{"unpin", func() (generation.Decision, error) { return choose.Unpin(t.Context()) }, 3},
	} {
		change()
		d, err := c.decide()
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if d.To != c.served {
			t.Fatalf("%s: generation %d is to be served, want %d", c.what, d.To, c.served)
		}
		change()
		if err := s.refresh.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.served.Number(); got != c.served {
			t.Fatalf("%s: generation %d is served, want %d", c.what, got, c.served)
		}
		if err := s.WaitPublished(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(c.what, c.served, sinkTopic(t, s, cfg))
	}
}

// A consumer that switches to a generation when the newest control record of each shard names it misses no node: in
// every partition, all of the generation lies before these records.
func TestControlRecordsEndAGeneration(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := testService(t, store, func(c *config.Config) { c.Sink.ControlRecords = true })
	produceGraph(t, s, cfg)
	settled(t, s, cfg, 1)
	for step := range 3 {
		produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{
			nodeID(step):            map[string]any{"id": nodeID(step), "text": text(step+3, step%4)},
			nodeID(9):               map[string]any{"id": nodeID(9), "text": text(step+5, step%4)},
			fmt.Sprint("new", step): map[string]any{"id": fmt.Sprint("new", step), "text": text(step, step%4)},
		})
		if step == 1 {
			if err := s.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := (generation.Chooser{Store: store, Now: time.Now}).Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		settled(t, s, cfg, []int64{2, 3, 4}[step])
	}
	topic := cfg.Kafka.Topics.Embeddings
	ends, err := s.Client().EndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var announced, found int64 // nodes of the last generation
	for p, end := range ends[topic] {
		tables, said := map[int64]map[string]bool{}, map[int]embedding.Completion{}
		var switches []int64
		for m, err := range s.Client().Range(t.Context(), topic, p, 0, end) {
			if err != nil {
				t.Fatal(err)
			}
			c, control, err := embeddingtopic.DecodeCompletion(m)
			if err != nil {
				t.Fatal(err)
			}
			if !control {
				r, err := embeddingtopic.Decode(m)
				if err != nil {
					t.Fatal(err)
				}
				if tables[r.Generation] == nil {
					tables[r.Generation] = map[string]bool{}
				}
				tables[r.Generation][r.NodeID] = true
				continue
			}
			said[c.Shard] = c
			all := len(said) == c.Shards
			for _, other := range said {
				all = all && other.Generation == c.Generation
			}
			if !all {
				continue
			}
			switches = append(switches, c.Generation)
			for g, table := range tables {
				for id := range table {
					if !tables[c.Generation][id] {
						t.Errorf("partition %d: %s, which generation %d has, is not in %d, which is complete", p, id, g,
							c.Generation)
					}
				}
			}
		}
		if len(switches) < 4 || switches[len(switches)-1] != 4 {
			t.Errorf("partition %d: generations %v became complete, want 1 to 4", p, switches)
		}
		found += int64(len(tables[4]))
		announced = 0
		for _, c := range said {
			announced += c.Nodes
		}
	}
	if found != announced || found < nodes {
		t.Errorf("generation 4: %d nodes are announced, %d are on the topic", announced, found)
	}
}

// A generation that is built behind a pin waits, and is not built again.
func TestGenerationsWaitBehindAPin(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := testService(t, store)
	produceGraph(t, s, cfg)
	settled(t, s, cfg, 1)
	if _, err := (generation.Chooser{Store: store, Now: time.Now}).Pin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{"new": map[string]any{"id": "new", "text": text(1, 1)}})
	records := settled(t, s, cfg, 1)
	if records["new"].Generation != 1 {
		t.Errorf("the new node is of generation %d, want 1", records["new"].Generation)
	}
	if got := gauge(t, s, "giantstream_generation_held"); got != 2 {
		t.Errorf("the metric says that %g waits, want 2", got)
	}
	if due, why, err := s.refresh.Due(t.Context()); err != nil || due {
		t.Errorf("another one is due: %v, %v", why, err)
	}
}

// settled brings everything up to date and published, and returns what the topic holds.
func settled(t *testing.T, s *Service, cfg *config.Config, served int64) map[string]embedding.Record {
	t.Helper()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	doc, _, err := s.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if doc.Generation != served {
		t.Fatalf("generation %d is served, want %d", doc.Generation, served)
	}
	if err := s.WaitPublished(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sinkTopic(t, s, cfg)
}
