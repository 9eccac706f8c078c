package service

import (
	"encoding/json"
	"net/http"
	"testing"

	"giantstream/cmd/internal/service/answering"
	"giantstream/config"
	"giantstream/sink/memstore"
)

// /map.json has every node of a small graph, near those of its own subject, and asks for the token. It is drawn once
// for a generation, and /status.json says how far the graph has gone from that.
func TestMapOfTheGenerationServed(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{}, listen(t), func(c *config.Config) {
		c.HTTP.Token = "s3cret"
		c.Refresh.MinChanges = 0.9
	})
	eventually(t, "the server listens", func() bool { code, _ := get(t, cfg, "/healthz"); return code == 200 })
	if r := request(t, cfg, http.MethodGet, "/map.json", "s3cret"); r.status != http.StatusNotFound {
		t.Errorf("before the first generation: %d %s", r.status, r.body)
	}
	produceGraph(t, s, cfg)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := request(t, cfg, http.MethodGet, "/map.json", ""); r.status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", r.status)
	}
	var doc answering.MapDocument
	eventually(t, "the map is drawn", func() bool {
		r := request(t, cfg, http.MethodGet, "/map.json", "s3cret")
		if r.status == http.StatusAccepted {
			return false
		}
		if err := json.Unmarshal([]byte(r.body), &doc); r.status != http.StatusOK || err != nil {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return true
	})
	if doc.Generation != 1 || len(doc.Points) != nodes || len(doc.Groups) < 2 || doc.Preserved < 0.3 {
		t.Errorf("generation %d, %d points, groups %v, %.2f preserved", doc.Generation, len(doc.Points), doc.Groups,
			doc.Preserved)
	}
	for _, p := range doc.Points {
		if p.X < 0 || p.X > answering.MapSide || p.Y < 0 || p.Y > answering.MapSide || p.Group > len(doc.Groups) {
			t.Fatalf("a point lies outside: %+v", p)
		}
	}

	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{"node-002": map[string]any{"id": "node-002",
		"text": "quantum chromodynamics"}})
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.refresh.Changes(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := s.refresh.Drift()
	if d == nil || d.RowsShare == nil || *d.Rows < 1 || *d.RowsShare <= 0 || *d.RowsShare > 0.5 || d.RefreshAt != 0.9 ||
		d.NGramsUnknown == nil || *d.NGramsUnknown <= *d.NGramsUnknownFitted || d.Embeddings != nil {
		t.Errorf("one text of new words: %+v", d)
	}
	metrics := request(t, cfg, http.MethodGet, "/metrics", "s3cret").body
	if share, _ := sum(t, metrics, "giantstream_drift_rows_share", ""); share != *d.RowsShare {
		t.Errorf("the metric says %v, the status %v", share, *d.RowsShare)
	}
}
