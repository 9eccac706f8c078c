package sinks

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"giantstream/config"
	"giantstream/internal/canary"
	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/vectordbtest"
	"giantstream/stream/forget"
)

// A sink in which a node is left is a finding, which says what to do and names no node; one that does not answer is not
// passed over. The process that writes to it goes on.
func TestScan(t *testing.T) {
	db := vectordbtest.NewMemory()
	writer := db.Process()
	table := vectordb.Table{Serial: 1, Generation: 1, Dim: 1}
	apply := func(offset int64, deleted bool) {
		t.Helper()
		r := vectordb.Record{Offset: offset, Record: embedding.Record{NodeID: "secret", Generation: 1,
			Vector: []float32{1}, Deleted: deleted}}
		if err := writer.Apply(t.Context(), vectordb.Batch{From: offset, Changes: []vectordb.Change{{Table: table,
			Upserts: []vectordb.Record{r}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{writer.Save(t.Context(), vectordb.Catalog{Tables: []vectordb.Table{table}}),
		writer.Create(t.Context(), table)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := config.Default()
	cfg.Sinks.Qdrant.URL = "http://127.0.0.1:1"
	cfg.Sinks.Qdrant.APIKey = config.Secret(canary.New(1))
	scan := func(connect func(*config.Config, *slog.Logger) (vectordb.Index, error)) forget.Report {
		t.Helper()
		kind, err := Find("qdrant")
		if err != nil {
			t.Fatal(err)
		}
		if connect != nil {
			kind.Connect = connect
		}
		s := forget.NewScanner(forget.Targets{IDs: []string{"secret", "other"}})
		if err := kind.Scan(t.Context(), s, &cfg, slog.New(slog.DiscardHandler), nil); err != nil {
			t.Fatal(err)
		}
		return s.Report()
	}
	memory := func(*config.Config, *slog.Logger) (vectordb.Index, error) { return db.Process(), nil }
	apply(0, false)
	r := scan(memory)
	if len(r.Findings) != 1 || r.Findings[0].IDs != 1 || r.Findings[0].Kind != "table of qdrant" ||
		!strings.Contains(r.Findings[0].Do, "giantstream sink refill qdrant") || len(r.Unread) > 0 {
		t.Errorf("%+v", r)
	}
	apply(1, true)
	if r := scan(memory); len(r.Findings)+len(r.Unread) > 0 {
		t.Errorf("after the deletion: %+v", r)
	}
	for name, connect := range map[string]func(*config.Config, *slog.Logger) (vectordb.Index, error){
		"no server": nil,
		"no options": func(*config.Config, *slog.Logger) (vectordb.Index, error) {
			return nil, errors.New("no such file")
		},
	} {
		r := scan(connect)
		if len(r.Findings) > 0 || len(r.Unread) != 1 || canary.Find(r.Unread[0], string(cfg.Sinks.Qdrant.APIKey)) != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kind, _ := Find("qdrant")
	if err := kind.Scan(ctx, forget.NewScanner(forget.Targets{}), &cfg, slog.Default(), nil); !errors.Is(err,
		context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
