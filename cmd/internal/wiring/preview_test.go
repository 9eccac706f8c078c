package wiring_test

import (
	"slices"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
)

// What people name is expected of the records, and nothing that is so by default.
func TestNamedFieldsAreExpected(t *testing.T) {
	if o := wiring.PreviewOf(new(config.Default()), 1, 1); len(o.Expected) > 0 {
		t.Errorf("by default %q", o.Expected)
	}
	for want, name := range map[string]func(*config.Ingest){
		"nodes.class":        func(c *config.Ingest) { c.Nodes.Class = "x" },
		"nodes.attributes":   func(c *config.Ingest) { c.Nodes.Attributes = []string{"x"} },
		"nodes.vectors":      func(c *config.Ingest) { c.Nodes.Vectors = []string{"x=x:3"} },
		"nodes.deleted":      func(c *config.Ingest) { c.Nodes.Deleted = "x == y" },
		"edges.deleted":      func(c *config.Ingest) { c.Edges.Deleted = "x == y" },
		"edges.weight":       func(c *config.Ingest) { c.Edges.Weight = "x" },
		"attributes.fields":  func(c *config.Ingest) { c.Attributes.Fields = []string{"t/x"} },
		"attributes.vectors": func(c *config.Ingest) { c.Attributes.Vectors = []string{"t/x=x:3"} },
		"baskets.quantity":   func(c *config.Ingest) { c.Baskets.Quantity = "x" },
		"baskets.time":       func(c *config.Ingest) { c.Baskets.Time = "x" },
		"baskets.event_time": func(c *config.Ingest) { c.Baskets.EventTime = "x" },
		"baskets.kind":       func(c *config.Ingest) { c.Baskets.Kind = "x" },
		"baskets.customer":   func(c *config.Ingest) { c.Baskets.Customer = "x" },
		"baskets.deleted":    func(c *config.Ingest) { c.Baskets.Deleted = "x == y" },
	} {
		c := config.Default()
		name(&c.Ingest)
		if o := wiring.PreviewOf(&c, 1, 1); !slices.Equal(o.Expected, []string{want}) {
			t.Errorf("%s: expected are %q", want, o.Expected)
		}
	}
}
