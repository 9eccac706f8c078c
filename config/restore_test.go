package config

import (
	"maps"
	"testing"
)

// What Values says of a configuration makes it again, whatever its columns are called.
func TestRestoreUndoesValues(t *testing.T) {
	for _, text := range []List{{"text"}, {"title", "body"}, {"Price, EUR"}, {"Price", "EUR"}, {`a "b"`, `"c"`, ","},
		{" spaced ", "${HOME}"}, {`"a", "b"`}, {}} {
		c := Default()
		c.Ingest.Nodes.Text, c.Ingest.Nodes.ID = text, "a, b"
		c.Ingest.Repartition, c.Ingest.Edges.EventTime = true, ""
		restored := Default()
		if err := restored.Restore(c.Values(Graph)); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if len(text) != len(restored.Ingest.Nodes.Text) || !maps.Equal(c.Values(Graph), restored.Values(Graph)) {
			t.Errorf("%q came back as %q", text, restored.Ingest.Nodes.Text)
		}
	}
	c := Default()
	err := c.Restore(map[string]string{"ingest.nodes.label": "shelf"})
	if err != nil || c.Ingest.Nodes.Class != "shelf" {
		t.Errorf("a field of an older release: class is %q, %v", c.Ingest.Nodes.Class, err)
	}
	if err := c.Restore(map[string]string{"ingest.nodes.colour": "red"}); err == nil {
		t.Error("a field of a newer release is passed over")
	}
}
