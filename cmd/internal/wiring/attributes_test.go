package wiring

import (
	"strings"
	"testing"

	"giantstream/config"
	"giantstream/sink/vectordb"
)

// What travels with the embeddings is named, and has the type that its input gives it.
func TestSinkAttributes(t *testing.T) {
	cfg := config.Default()
	cfg.Ingest.Nodes.Attributes = config.List{"brand", "seq:number", "b:strings=x"}
	cfg.Ingest.Attributes.Fields = config.List{"prices/price:number"}
	cfg.Sinks.Attributes = config.List{"price", "brand"}
	if faults := sinkAttributeFaults(&cfg); len(faults) > 0 {
		t.Errorf("%v", faults)
	}
	got := SinkAttributes(&cfg)
	if len(got) != 2 || got[0] != (vectordb.Attribute{Name: "price", Type: vectordb.Number}) ||
		got[1] != (vectordb.Attribute{Name: "brand", Type: vectordb.String}) {
		t.Errorf("got %v", got)
	}
	for name, want := range map[string]string{
		"prize": "name b, brand, price, seq",
		"seq":   "item_seq=seq",
		"brand": "given twice",
	} {
		cfg.Sinks.Attributes = config.List{"brand", name}
		faults := sinkAttributeFaults(&cfg)
		if len(faults) != 1 || faults[0].Path != "sinks.attributes[1]" || !strings.Contains(faults[0].Message, want) {
			t.Errorf("%s: got %v, want %q", name, faults, want)
		}
	}
	cfg.Ingest.Nodes.Attributes, cfg.Ingest.Attributes.Fields = nil, nil
	cfg.Sinks.Attributes = config.List{"brand"}
	if faults := sinkAttributeFaults(&cfg); len(faults) != 1 || !strings.Contains(faults[0].Message, "name none") {
		t.Errorf("without attributes: %v", faults)
	}
}
