package ingest_test

import (
	"slices"
	"strings"
	"testing"

	"giantstream/ingest"
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
	bad := ingest.Topics{Nodes: "n", Edges: "n", Embeddings: "v"}
	err := bad.Validate()
	for _, want := range []string{"the nodes and edges topics are both named", "dead-letter topic has no name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
}
