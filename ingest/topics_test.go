package ingest_test

import (
	"slices"
	"strings"
	"testing"

	"giantstream/ingest"
	"giantstream/stream/mutation"
)

func TestTopics(t *testing.T) {
	good := ingest.Topics{Nodes: "n", Edges: "e", Mirror: "m", Embeddings: "v", DeadLetters: "d"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	directed := good
	directed.Mirror = ""
	if err := directed.Validate(); err != nil || !slices.Equal(directed.Inputs(), []string{"n", "e"}) {
		t.Errorf("directed: %v, %v", directed.Inputs(), err)
	}
	if got := withFurther(directed).Inputs(); !slices.Equal(got, []string{"n", "e", "stock", "prices"}) {
		t.Errorf("further inputs: %v", got)
	}
	for in, topic := range withFurther(good).Numbered() {
		want := map[string]mutation.Input{"n": mutation.Nodes, "e": mutation.Edges, "stock": 2, "prices": 4,
			"m": mutation.Mirror}
		if in != want[topic] {
			t.Errorf("%s is input %d, want %d", topic, in, want[topic])
		}
	}
	bad := ingest.Topics{Nodes: "n", Edges: "n", Embeddings: "v"}
	err := bad.Validate()
	for _, want := range []string{"the nodes and edges topics are both named", "dead-letter topic has no name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
}

// withFurther adds two further inputs, of a pipeline that had one between them.
func withFurther(t ingest.Topics) ingest.Topics {
	t.Further = []string{"prices", "stock"}
	return t.Ranked([]string{"stock", "gone", "prices"})
}
