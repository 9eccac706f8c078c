package service

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/refreshing"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

// A generation that the gate refuses is not served and not built again on its cut; the next changes
// bring one that is.
func TestARefusedGenerationIsNotServedNorBuiltAgain(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := testService(t, store, func(c *config.Config) {
		c.Refresh.QualityGate, c.Evaluate.HoldoutEdges = "block", 0.3
	})
	upToDate := func(generation int64, built bool, refused int64) {
		t.Helper()
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		doc, here, err := s.UpToDate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var no int64
		if d := s.Refused(); d != nil {
			no = d.Generation
		}
		if doc.Generation != generation || here != built || no != refused {
			t.Errorf("generation %d, built %v, refused %d; want %d, %v, %d", doc.Generation, here, no, generation,
				built, refused)
		}
		if got := gauge(t, s, "giantstream_generation_refused"); got != float64(refused) {
			t.Errorf("the metric says %g refused, want %d", got, refused)
		}
		if err := s.WaitPublished(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	produceGraph(t, s, cfg)
	upToDate(1, true, 0)

	change := func(n, by int) {
		texts := map[string]any{}
		for i := range n {
			texts[nodeID(i)] = map[string]any{"id": nodeID(i), "text": text(i+by, i%4), "label": fmt.Sprint(i % 4)}
		}
		produce(t, s, cfg.Kafka.Topics.Nodes, texts)
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	change(80, 1)
	request := wiring.RequestOf(cfg)
	request.Shards = cfg.Shards
	if _, err := s.refresh.TaskWorker(store).Build(t.Context(), request, stages.Evaluate); err != nil {
		t.Fatal(err)
	}
	spoilEvaluation(t, store, stages.TasksPrefix(2)+stages.Evaluate+"/00000/done.json")
	upToDate(1, true, 2)
	upToDate(1, false, 2)
	if due, why, err := s.refresh.Due(t.Context()); err != nil || due {
		t.Errorf("a refresh is due on the refused cut: %v, %v", why, err)
	}
	for id, r := range sinkTopic(t, s, cfg) {
		if r.Generation != 1 {
			t.Fatalf("%s was published by generation %d", id, r.Generation)
		}
	}

	// A process that starts finds the same state in the store.
	served := &generation.Served{}
	other := &refreshing.Refresh{Store: store, Served: served, Heads: &heads.Heads{}, Log: s.log,
		Registry: prometheus.NewRegistry()}
	other.Open()
	if err := other.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if served.Number() != 1 || other.Refused() == nil || other.Refused().Generation != 2 {
		t.Errorf("another process serves %d, refused %v", served.Number(), other.Refused())
	}

	change(60, 2)
	upToDate(3, true, 0)
}

// spoilEvaluation makes the encoder worse than text alone in what the task that has evaluated it says.
func spoilEvaluation(t *testing.T, store sink.Store, key string) {
	t.Helper()
	data, err := sink.ReadAll(t.Context(), store, key)
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := seal.Open(data, sink.PlaceOf(store, key))
	if err != nil {
		t.Fatal(err)
	}
	var done map[string]any
	if err := json.Unmarshal(body, &done); err != nil {
		t.Fatal(err)
	}
	all := done["stats"].(map[string]any)["evaluation"].([]any)
	all[1].(map[string]any)["links"].(map[string]any)["auc"] = 0.1
	if data, err = seal.JSON(done, sink.PlaceOf(store, key)); err == nil {
		err = sink.PutBytes(t.Context(), store, key, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// gauge returns the value of one of the service's gauges.
func gauge(t *testing.T, s *Service, name string) float64 {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
