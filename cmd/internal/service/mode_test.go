package service

import (
	"testing"

	"giantstream/config"
	"giantstream/sink/memstore"
)

// refresh.mode: auto builds locally while few nodes have changed, at most localSteps times in a row, and in full
// otherwise.
func TestModeAuto(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{}, func(c *config.Config) {
		c.Train.Encoder, c.Refresh.Mode, c.Refresh.MinChanges = "hybrid", config.RefreshAuto, 1
		c.Train.Epochs = 1
	})
	produceGraph(t, s, cfg)
	generation := int64(0)
	refresh := func(changed int) (localSteps int) {
		t.Helper()
		texts := map[string]any{}
		for i := range changed {
			at := (int(generation)*7 + i) % nodes
			texts[nodeID(at)] = map[string]any{"id": nodeID(at), "text": text(at, (int(generation)+at)%4)}
		}
		produce(t, s, cfg.Kafka.Topics.Nodes, texts)
		generation++
		settled(t, s, cfg, generation)
		doc := s.Current().Doc
		if (doc.LocalOf > 0) != (doc.LocalSteps > 0) {
			t.Fatalf("generation %d is local of %d, step %d", generation, doc.LocalOf, doc.LocalSteps)
		}
		return doc.LocalSteps
	}
	few, many := nodes/10, nodes/2
	for i, step := range []struct{ changed, want int }{
		{0, 0}, // the first
		{few, 1}, {few, 2}, {few, 3}, {few, 4},
		{few, 0}, // after localSteps in a row
		{few, 1},
		{many, 0},
		{few, 1},
	} {
		if got := refresh(step.changed); got != step.want {
			t.Errorf("build %d, of %d changed nodes: local step %d, want %d", i+1, step.changed, got, step.want)
		}
	}
	if localSteps != 4 || localShare*nodes < float64(few) || localShare*nodes >= float64(many) {
		t.Error("the test does not fit localSteps and localShare any more")
	}
}
