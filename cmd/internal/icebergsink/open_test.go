package icebergsink

import (
	"strings"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink/iceberg"
)

// No attribute takes the name of a column that the table of embeddings has.
func TestAttributesAreNoColumnsOfTheTable(t *testing.T) {
	for _, field := range iceberg.Schema().Fields() {
		cfg := config.Default()
		cfg.Ingest.Nodes.Attributes = config.List{field.Name}
		cfg.Sinks.Attributes = config.List{field.Name}
		err := wiring.Check(&cfg)
		if err == nil || !strings.Contains(err.Error(), "a column of the sinks' own") {
			t.Errorf("%s: %v", field.Name, err)
		}
	}
}
