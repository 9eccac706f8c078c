package wiring

import (
	"testing"
	"time"

	"giantstream/config"
	"giantstream/ingest"
	"giantstream/ingest/decode"
	"giantstream/stream/forget"
	"giantstream/stream/mutation"
)

// The records that delete a node say so under any mapping: its own links go, those that others state, and the node. All
// of it is later than what the store knows, even if that is in the future.
func TestDeletions(t *testing.T) {
	ahead := time.Now().Add(1000 * time.Hour).Truncate(time.Microsecond)
	known := forget.Known{Live: 1, Links: map[string][]forget.Link{"near": {{To: "gone"}}}, EventTime: ahead.UnixMicro()}
	for name, change := range map[string]func(*config.Ingest){
		"the default": func(*config.Ingest) {},
		"nested, links replace": func(in *config.Ingest) {
			in.Nodes.ID, in.Nodes.Edges = "item.sku", config.List{"item.related.bought[*]"}
			in.Edges.Src, in.Edges.Dst, in.Edges.Mode = "from", "links[*].target", "replace"
		},
		"deletions by condition": func(in *config.Ingest) {
			in.Nodes.Deleted, in.Edges.Deleted = "status in [draft, archived]", "state != live"
		},
		"deletions of nodes by null alone": func(in *config.Ingest) { in.Nodes.Deleted = "" },
		"change events": func(in *config.Ingest) {
			in.Nodes.Format, in.Edges.Format, in.Nodes.Edges = config.Debezium, config.Debezium, config.List{"near"}
		},
		"change events, by condition": func(in *config.Ingest) {
			in.Nodes.Format, in.Edges.Format, in.Edges.Mode = config.Debezium, config.Debezium, "replace"
			in.Nodes.Deleted, in.Edges.Deleted = "state != live", "state in [gone]"
		},
		"links of several kinds": func(in *config.Ingest) {
			in.Nodes.Edges = config.List{"bought=related.bought[*]", "near[*].sku"}
		},
		"links of objects": func(in *config.Ingest) { in.Nodes.Edges = config.List{"near[*].sku"} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			change(&cfg.Ingest)
			messages, err := Deletions(&cfg, map[string]bool{"gone": true}, known, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			mapping, limits := MappingOf(&cfg)
			nodes, err := decode.Nodes(mapping.Nodes, limits, 1)
			if err != nil {
				t.Fatal(err)
			}
			edges, err := decode.Edges(mapping.Edges, limits, 1)
			if err != nil {
				t.Fatal(err)
			}
			var ops []mutation.Mutation
			for _, m := range messages {
				d := nodes
				if m.Topic == cfg.Kafka.Topics.Edges {
					d = edges
				}
				var fault *decode.Fault
				if ops, fault = d.Decode(decode.Record{Key: m.Key, Value: m.Value}, ops); fault != nil {
					t.Errorf("%s: %s: %v", m.Topic, m.Value, fault)
				}
				if at := string(m.Headers[0].Value); m.Headers[0].Key != ingest.EventTimeHeader ||
					at != ahead.UTC().Format(time.RFC3339Nano) {
					t.Errorf("event time %s, want that of %v", at, ahead)
				}
			}
			if len(cfg.Ingest.Nodes.Edges) > 0 {
				if first := ops[0]; first.Op != mutation.PutNode || !first.HasEdges || len(first.Others) > 0 {
					t.Errorf("the links that it states: %+v", first)
				}
				ops = ops[1:]
			}
			if len(ops) != 3 || ops[0].Op != mutation.DeleteNode || ops[0].ID != "gone" ||
				ops[1].Op != mutation.ClearEdges || ops[1].ID != "gone" ||
				ops[2].Op != mutation.DeleteEdge || ops[2].ID != "near" || ops[2].Other != "gone" {
				t.Errorf("%+v", ops)
			}
		})
	}
}
