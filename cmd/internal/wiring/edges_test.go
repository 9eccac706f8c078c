package wiring

import (
	"strings"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/ingest/decode"
	"giantstream/stream/forget"
	"giantstream/stream/mutation"
)

// Statements about a link compare by their offsets, so that the links of a kind come from one topic.
func TestEdgeTopicFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.EdgeFields)
		want   string // in the faults, "" for none
	}{
		"two topics": {func(e *config.EdgeFields) { e.Topics = config.List{"views/viewed", "sets/part=a,b"} }, ""},
		"a constant beside them": {func(e *config.EdgeFields) {
			e.Topics, e.Kind = config.List{"views/viewed"}, `"bought"`
		}, ""},
		"the same kind twice": {func(e *config.EdgeFields) { e.Topics = config.List{"a/k", "b/k"} }, "topics[1]"},
		"the same topic twice": {func(e *config.EdgeFields) { e.Topics = config.List{"a/k", "a/l"} },
			"topic a is given twice"},
		"the kind of the first topic": {func(e *config.EdgeFields) {
			e.Topics, e.Kind = config.List{"a/k"}, `"k"`
		}, "come from edges already"},
		"a field for the kind": {func(e *config.EdgeFields) { e.Topics, e.Kind = config.List{"a/k"}, "kind" },
			"ingest.edges.kind"},
		"lists that replace": {func(e *config.EdgeFields) { e.Topics, e.Mode = config.List{"a/k"}, "replace" },
			"ingest.edges.mode"},
		"no kind": {func(e *config.EdgeFields) { e.Topics = config.List{"a"} }, "TOPIC/KIND"},
		"a path that is none": {func(e *config.EdgeFields) { e.Topics = config.List{"a/k=src,d[", "b/l"} },
			"topics[0]"},
	} {
		cfg := config.Default()
		c.change(&cfg.Ingest.Edges)
		var said []string
		for _, f := range mappingFaults(&cfg) {
			said = append(said, f.Path+": "+f.Message)
		}
		all := strings.Join(said, "\n")
		if (len(said) > 0) != (c.want != "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: %q, want %q", name, all, c.want)
		}
	}
}

// Nothing takes back all links that a topic of one kind states of a node, so that each is deleted, from either end.
func TestDeletionsInEdgeTopics(t *testing.T) {
	cfg := config.Default()
	cfg.Ingest.Edges.Topics = config.List{"views/viewed=from,to"}
	known := forget.Known{Live: 1,
		Links: map[string][]forget.Link{"near": {{To: "gone", Kind: "viewed"}, {To: "gone"}}},
		Own:   map[string][]forget.Link{"gone": {{To: "near", Kind: "viewed"}, {To: "near"}}}}
	messages, err := Deletions(&cfg, map[string]bool{"gone": true}, known, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	mapping, limits := MappingOf(&cfg)
	d, err := decode.Further(&mapping, "views", mutation.Further, limits, 1)
	if err != nil {
		t.Fatal(err)
	}
	var ops []mutation.Mutation
	for _, m := range messages {
		if m.Topic != "views" {
			continue
		}
		var fault *decode.Fault
		if ops, fault = d.Decode(decode.Record{Key: m.Key, Value: m.Value}, ops); fault != nil {
			t.Errorf("%s: %v", m.Value, fault)
		}
	}
	if len(ops) != 2 || ops[0].Op != mutation.DeleteEdge || ops[0].ID != "gone" || ops[0].Other != "near" ||
		ops[1].Op != mutation.DeleteEdge || ops[1].ID != "near" || ops[1].Other != "gone" {
		t.Errorf("%+v", ops)
	}
	if len(messages) != 5 {
		t.Errorf("%d messages, want the node, its edges, two links of topic views, and one of edges", len(messages))
	}
}
