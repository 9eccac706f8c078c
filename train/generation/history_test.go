package generation

import (
	"testing"

	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// A document has the figures of the ready generations before it, the newest last, however many were removed since.
func TestHistoryIsInherited(t *testing.T) {
	doc := &Doc{Generation: 1}
	for g := int64(2); g <= 2*historyKept; g++ {
		doc.Evaluation = []fit.Evaluation{{Encoder: "lsa"},
			{Encoder: "hybrid", Links: &eval.LinkMetrics{AUC: float64(doc.Generation)}}}
		next := &Doc{Generation: g}
		next.Inherit(doc)
		if next.Parent != doc.Generation {
			t.Fatalf("generation %d has the parent %d", g, next.Parent)
		}
		doc = next
	}
	if len(doc.History) != historyKept {
		t.Fatalf("the history has %d generations, want %d", len(doc.History), historyKept)
	}
	for i, s := range doc.History {
		want := doc.Generation - int64(historyKept-i)
		if s.Generation != want || *s.Figures[1].LinkAUC != float64(want) || s.Figures[0].LinkAUC != nil {
			t.Fatalf("entry %d is %+v, want generation %d", i, s, want)
		}
	}
}
