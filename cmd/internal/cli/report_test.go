package cli

import (
	"bytes"
	"strings"
	"testing"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/service/ingesting"
	"giantstream/ingest/backfill"
	"giantstream/stream/mutation"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
)

// printed is what a report prints.
func printed(t *testing.T, r *runReport) string {
	t.Helper()
	var out bytes.Buffer
	cfg, err := (&command.PipelineFlags{Store: t.TempDir()}).Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.print(&out, cfg); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRunSaysThatAGenerationWasRefused(t *testing.T) {
	r := &runReport{Generation: &generation.Doc{Generation: 1, Status: generation.Ready}, Built: true,
		Refused: &generation.Doc{Generation: 2, Parent: 1, Status: generation.Refused, QualityGate: generation.GateBlock,
			Encoder:    generation.EncoderStats{Kind: "bag"},
			Shortfalls: []fit.Shortfall{{Figure: "class, 10 % labelled", Text: 0.74, Encoder: 0.67, StdErr: 0.01}}}}
	out := printed(t, r)
	for _, want := range []string{"Generation 2 was refused; generation 1 keeps serving",
		"WARNING: generation 2 was refused"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Of several inputs of edges, the summary says which is which, and it counts orders and attributes, too.
func TestRunNamesItsInputs(t *testing.T) {
	applied := mutation.Outcomes{Applied: 2}
	r := &runReport{Sent: &backfill.Stats{Nodes: 1, Edges: 4, Attributes: 1, Orders: 3}, Read: []ingesting.InputOutcomes{
		{Input: "edges", Topic: "edges", Outcomes: applied}, {Input: "edges", Topic: "replaces", Outcomes: applied}}}
	out := printed(t, r)
	for _, want := range []string{" 1 node record, 4 edge records, 1 record of attributes and 3 records of orders\n",
		" edges: 2 records: 2 applied\n", " edges of replaces: 2 records: 2 applied\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
