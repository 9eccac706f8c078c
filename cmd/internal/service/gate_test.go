package service

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/refreshing"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/encoders"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
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

	change := func(n int) {
		texts := map[string]any{}
		for i := range n {
			texts[nodeID(i)] = map[string]any{"id": nodeID(i), "text": text(i+1, i%4), "label": fmt.Sprint(i % 4)}
		}
		produce(t, s, cfg.Kafka.Topics.Nodes, texts)
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	change(80)
	b := wiring.NewBuilder(cfg, store, nil, nil, slog.New(slog.DiscardHandler))
	if _, err := b.BuildNext(t.Context(), s.refresh.Cut, generation.UntilDataset); err != nil {
		t.Fatal(err)
	}
	v, p := open(t, store, "vectorizer", tfidf.Read), open(t, store, "projection", projection.Read)
	// An encoder that tells no text from another.
	e, err := linear.New(v, p, slices.Repeat([]float32{1}, p.Dim()*p.Dim()), p.Dim())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encoders.Save(t.Context(), store, generation.Prefix(2)+"encoder", e,
		encoders.Meta{Vectorizer: v, Projection: p}); err != nil {
		t.Fatal(err)
	}
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

	change(60)
	upToDate(3, true, 0)
}

// open reads an artifact of generation 2.
func open[T any](t *testing.T, store sink.Store, name string, read func(io.Reader) (T, error)) T {
	t.Helper()
	data, err := sink.ReadAll(t.Context(), store, generation.Prefix(2)+name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
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
