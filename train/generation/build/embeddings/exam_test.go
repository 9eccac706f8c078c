package embeddings

import (
	"slices"
	"testing"

	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/generation/eval"
)

// Hidden edges to nodes without text are not asked about, but their other ends have a link.
func TestExamWithoutMissingTexts(t *testing.T) {
	graph := &train.Graph{Classes: []string{"x", "y", "z", "x"}}
	hidden := []eval.Edge{{Src: 0, Dst: 1}, {Src: 3, Dst: 2}}
	status := []embedding.Status{embedding.FromText, embedding.FromText, embedding.NoText, embedding.FromText}
	exam := examWithout(status, graph, hidden)
	if !slices.Equal(exam.Hidden, hidden[:1]) || !slices.Equal(exam.Left, hidden[1:]) || exam.Classes != 2 {
		t.Errorf("hidden %v, left %v, %d classes", exam.Hidden, exam.Left, exam.Classes)
	}
	if exam.Known.Classes[2] != "" || graph.Classes[2] != "z" {
		t.Errorf("classes %q, of the graph %q", exam.Known.Classes, graph.Classes)
	}
}
