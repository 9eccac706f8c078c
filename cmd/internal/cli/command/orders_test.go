package command

import (
	"reflect"
	"testing"

	"giantstream/config"
)

// Files of orders have a topic without a name for it, and the time of a change as nodes have it. Without such files,
// flags of nodes leave orders alone.
func TestFlagsOfOrders(t *testing.T) {
	cfg := config.Default()
	f := InputFlags{eventTime: "at"}
	f.Apply(&cfg)
	if cfg.Ingest.Nodes.EventTime != "at" || !reflect.DeepEqual(cfg.Ingest.Baskets, config.Default().Ingest.Baskets) {
		t.Errorf("without files: %+v", cfg.Ingest.Baskets)
	}
	f.Orders = []string{"orders.csv"}
	f.order = orderFlags{id: []string{"order"}, item: "sku", quantity: "n", time: "placed", kind: "kind",
		customer: "who", mode: "add"}
	f.Apply(&cfg)
	want := config.Default().Ingest.Baskets
	want.Topic, want.ID, want.Items = ordersTopic, config.List{"order"}, "sku"
	want.Quantity, want.Time = "n", "placed"
	want.EventTime, want.Kind, want.Customer, want.Mode = "at", "kind", "who", "add"
	if !reflect.DeepEqual(cfg.Ingest.Baskets, want) {
		t.Errorf("%+v, want %+v", cfg.Ingest.Baskets, want)
	}
	f.nodesEventTime, f.order.eventTime = "updated_at", "changed"
	f.Apply(&cfg)
	if in := &cfg.Ingest; in.Nodes.EventTime != "updated_at" || in.Edges.EventTime != "at" ||
		in.Baskets.EventTime != "changed" {
		t.Errorf("event times: nodes %s, edges %s, orders %s", in.Nodes.EventTime, in.Edges.EventTime,
			in.Baskets.EventTime)
	}
	cfg.Ingest.Baskets.Topic = "shop.orders"
	if f.Apply(&cfg); cfg.Ingest.Baskets.Topic != "shop.orders" {
		t.Errorf("the topic that the configuration names has become %s", cfg.Ingest.Baskets.Topic)
	}
}
