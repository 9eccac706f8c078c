package service

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
)

// A second topic gets a new generation first, with all nodes. The embeddings topic gets it once it is promoted, and
// never if it is taken back; the second topic then returns to the one that is served. Both say when a generation is
// complete.
func TestCanaryTopicUnderChanges(t *testing.T) {
	c := newCanaryTest(t)
	c.run(func(what string, served, canary int64) {
		t.Helper()
		main, next := sinkTopic(t, c.s, c.cfg), newestOf(t, c.s, "next")
		for _, topic := range []struct {
			name    string
			records map[string]embedding.Record
			want    int64
		}{{c.cfg.Kafka.Topics.Embeddings, main, served}, {"next", next, cmp.Or(canary, served)}} {
			for id, r := range topic.records {
				other, ok := main[id]
				if _, there := next[id]; !ok || !there || other.Seq > 0 && r.Deleted != other.Deleted {
					t.Fatalf("%s: %s is on one of the topics alone: %+v, %+v", what, id, other, next[id])
				}
				if !r.Deleted && r.Generation != topic.want {
					t.Fatalf("%s: on %s, %s is of generation %d, want %d", what, topic.name, id, r.Generation, topic.want)
				}
			}
			if got := announced(t, c.s, topic.name); got != topic.want {
				t.Fatalf("%s: %s says that generation %d is complete, want %d", what, topic.name, got, topic.want)
			}
		}
	})
	c.neverServed(3)
}

// announced returns the generation that the last control record of each partition names, 0 if they differ.
func announced(t *testing.T, s *Service, topic string) (generation int64) {
	t.Helper()
	last := map[int]int64{}
	for _, m := range recordsOf(t, s, topic) {
		if c, ok, err := embeddingtopic.DecodeCompletion(m); err != nil {
			t.Fatal(err)
		} else if ok {
			last[m.Partition] = c.Generation
		}
	}
	for _, g := range last {
		if generation != 0 && g != generation {
			return 0
		}
		generation = g
	}
	return generation
}

// canaryTest is a pipeline whose generations begin as canaries while the catalog changes.
type canaryTest struct {
	t     *testing.T
	s     *Service
	cfg   *config.Config
	store *memstore.Store
	steps int
}

func newCanaryTest(t *testing.T) *canaryTest {
	c := &canaryTest{t: t, store: &memstore.Store{}}
	c.s, c.cfg = testService(t, c.store, func(c *config.Config) {
		c.Sink.CanaryTopic, c.Sink.ControlRecords = "next", true
	})
	return c
}

// change changes a node, adds one, and deletes one that was added.
func (c *canaryTest) change() {
	c.t.Helper()
	c.steps++
	id := fmt.Sprintf("new%d", c.steps)
	produce(c.t, c.s, c.cfg.Kafka.Topics.Nodes, map[string]any{
		id:                              map[string]any{"id": id, "text": text(c.steps, c.steps%4)},
		nodeID(c.steps):                 map[string]any{"id": nodeID(c.steps), "text": text(c.steps+7, c.steps%4)},
		fmt.Sprintf("new%d", c.steps-2): nil,
	})
}

// decide changes the catalog before, while and after a decision is made and followed.
func (c *canaryTest) decide(what string, do func() (generation.Decision, error)) {
	c.t.Helper()
	c.change()
	if _, err := do(); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	c.change()
	if err := c.s.refresh.Load(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.change()
	if err := c.s.Drain(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	if err := c.s.WaitPublished(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// run promotes generations 2 and 4 and withdraws 3. check is told which generation is served and which is the canary.
func (c *canaryTest) run(check func(what string, served, canary int64)) {
	t, s, cfg := c.t, c.s, c.cfg
	t.Helper()
	choose := generation.Chooser{Store: c.store, Now: time.Now}
	promote := func(g int64) func() (generation.Decision, error) {
		return func() (generation.Decision, error) { return choose.Promote(t.Context(), g) }
	}
	stands := func(what string, served, canary int64) {
		t.Helper()
		check(what, served, canary)
		if got := gauge(t, s, "giantstream_generation_canary"); got != float64(canary) {
			t.Errorf("%s: the metric says that %g is the canary, want %d", what, got, canary)
		}
	}
	produceGraph(t, s, cfg)
	settled(t, s, cfg, 1)
	stands("generation 1", 1, 0)
	c.change()
	settled(t, s, cfg, 1)
	stands("2 is the canary", 1, 2)
	c.decide("promote 2", promote(2))
	stands("2 is promoted", 2, 0)
	settled(t, s, cfg, 2)
	stands("3 is the canary", 2, 3)
	c.decide("rollback", func() (generation.Decision, error) { return choose.Rollback(t.Context()) })
	stands("3 is withdrawn", 2, 0)
	settled(t, s, cfg, 2)
	stands("4 is the canary", 2, 4)
	c.decide("promote 4", promote(4))
	stands("4 is promoted", 4, 0)
}

// neverServed checks that the embeddings topic has no record of a generation.
func (c *canaryTest) neverServed(g int64) {
	c.t.Helper()
	for _, m := range recordsOf(c.t, c.s, c.cfg.Kafka.Topics.Embeddings) {
		if embeddingtopic.IsControl(m) {
			continue
		}
		r, err := embeddingtopic.Decode(m)
		if err != nil {
			c.t.Fatal(err)
		}
		if r.Generation == g {
			c.t.Errorf("%s got generation %d, which was only ever a canary", r.NodeID, g)
		}
	}
}
