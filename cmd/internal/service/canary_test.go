package service

import (
	"fmt"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/memstore"
	"giantstream/stream/publish"
	"giantstream/train/generation"
)

// A share of the nodes gets a new generation first, and all get it once it is promoted, or none if it is taken back,
// while the catalog changes. Nobody outside of the share ever sees a generation on trial.
func TestCanaryUnderChanges(t *testing.T) {
	const share = 0.4
	store := &memstore.Store{}
	s, cfg := testService(t, store, func(c *config.Config) { c.Sink.Canary = share })
	choose := generation.Chooser{Store: store, Now: time.Now}
	produceGraph(t, s, cfg)
	step := 0
	change := func() {
		t.Helper()
		step++
		id := fmt.Sprintf("new%d", step)
		produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{
			id:           map[string]any{"id": id, "text": text(step, step%4)},
			nodeID(step): map[string]any{"id": nodeID(step), "text": text(step+7, step%4)},
		})
	}
	// decide changes the catalog before, while and after a decision is made and followed.
	decide := func(what string, do func() (generation.Decision, error)) {
		t.Helper()
		change()
		if _, err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		change()
		if err := s.loadCurrent(t.Context()); err != nil {
			t.Fatal(err)
		}
		change()
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitPublished(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, served, canary int64) {
		t.Helper()
		n := 0
		for id, r := range sinkTopic(t, s, cfg) {
			want := served
			if canary > 0 && publish.InShare(id, share) {
				want = canary
				n++
			}
			if r.Generation != want {
				t.Fatalf("%s: %s is of generation %d, want %d", what, id, r.Generation, want)
			}
		}
		if (n > 0) != (canary > 0) {
			t.Fatalf("%s: %d nodes are in the share", what, n)
		}
		if got := gauge(t, s, "giantstream_generation_canary"); got != float64(canary) {
			t.Errorf("%s: the metric says that %g is on trial, want %d", what, got, canary)
		}
	}
	settled(t, s, cfg, 1)
	check("generation 1", 1, 0)
	change()
	settled(t, s, cfg, 1)
	check("2 is on trial", 1, 2)
	decide("promote 2", func() (generation.Decision, error) { return choose.Promote(t.Context(), 2) })
	check("2 is promoted", 2, 0)
	settled(t, s, cfg, 2)
	check("3 is on trial", 2, 3)
	decide("rollback", func() (generation.Decision, error) { return choose.Rollback(t.Context()) })
	check("3 is taken back", 2, 0)
	settled(t, s, cfg, 2)
	check("4 is on trial", 2, 4)
	decide("promote 4", func() (generation.Decision, error) { return choose.Promote(t.Context(), 4) })
	check("4 is promoted", 4, 0)

	for _, m := range recordsOf(t, s, cfg.Kafka.Topics.Embeddings) {
		r, err := embeddingtopic.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		if r.Generation == 3 && !publish.InShare(r.NodeID, share) {
			t.Errorf("%s got generation 3, which was only ever on trial", r.NodeID)
		}
	}
}
