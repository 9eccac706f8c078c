package wiring

import (
	"reflect"
	"testing"

	"giantstream/config"
)

// Each setting of the graph has words of its own, and the mapping of before is found again from what a store keeps.
func TestRemapping(t *testing.T) {
	before := config.Default()
	before.Pipeline, before.Ingest.Nodes.Text = "shop", config.List{"titel", "a, b"}
	before.Ingest.Baskets.Topic = "orders"
	id := IdentityOf(&before)
	after := before
	after.Pipeline = "shop-2" // and with it the mirror topic
	if got := Remapping(id, &after); len(got) != 0 {
		t.Errorf("of the same mapping: %+v", got)
	}
	after.Ingest.Nodes.Text, after.Ingest.Undirected = config.List{"title"}, !before.Ingest.Undirected
	after.Ingest.Nodes.ID, after.Ingest.Nodes.Attributes = "sku", config.List{"price"}
	got := map[string]Remapped{}
	for _, c := range Remapping(id, &after) {
		got[c.Field] = c
	}
	if len(got) != 4 || got["ingest.nodes.text"].From != `titel, "a, b"` || !got["ingest.nodes.id"].OtherNodes ||
		got["ingest.undirected"].OtherNodes || got["ingest.nodes.attributes"].To != "price" {
		t.Errorf("%+v", got)
	}
	old, err := MappedBefore(id, &after)
	if err != nil || !reflect.DeepEqual(GraphSettings(old), id.Settings) || old.Ingest.Undirected != id.Undirected {
		t.Errorf("the mapping of before: %v, %v", GraphSettings(old), err)
	}
	for field := range before.Values(config.Graph) {
		if remapNeeds(field) == "all records are read again" {
			t.Errorf("%s: nothing says what its change needs", field)
		}
	}
}
