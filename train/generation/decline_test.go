package generation

import (
	"strings"
	"testing"
)

func summary(g int64, encoder string, text, own, stderr float64) Summary {
	return Summary{Generation: g, Encoder: encoder, Figures: []Figures{
		{Encoder: "lsa", LinkAUC: &text, LinkAUCStdErr: stderr}, {Encoder: encoder, LinkAUC: &own, LinkAUCStdErr: stderr}}}
}

// A fall that no two neighbours show is seen as their sum, and compared with the best of the last ten.
func TestDeclinesAddUp(t *testing.T) {
	const stderr = 0.005 // of a difference of leads: .01
	var history []Summary
	for g := range 6 {
		history = append(history, summary(int64(g+1), "hybrid", 0.8, 0.95-0.009*float64(g), stderr))
	}
	for k := 1; k < len(history); k++ {
		got := DeclinesOf(history[k], history[:k])
		if fallen := 0.009 * float64(k); (len(got) > 0) != (fallen > 2*0.01) {
			t.Errorf("after a fall of %.3f: %+v", fallen, got)
		}
	}
	last := DeclinesOf(history[5], history[:5])
	if len(last) != 1 || last[0].Since != 1 || last[0].Figure != "link AUC" {
		t.Fatalf("%+v", last)
	}
	warned := (&Doc{Encoder: EncoderStats{Kind: "hybrid"}, Declines: last}).Warning()
	if !strings.Contains(warned, "link AUC (+0.105 over text alone, +0.150 in generation 1)") {
		t.Errorf("it warns: %q", warned)
	}
	t.Run("a harder graph", func(t *testing.T) { // is harder for the text, too
		if got := DeclinesOf(summary(7, "hybrid", 0.7, 0.85, stderr), history[:1]); len(got) > 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("another encoder", func(t *testing.T) {
		if got := DeclinesOf(summary(7, "linear", 0.8, 0.81, stderr), history); len(got) > 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("long ago", func(t *testing.T) {
		old := append([]Summary{summary(1, "hybrid", 0.8, 0.99, stderr)}, make([]Summary, 10)...)
		if got := DeclinesOf(summary(12, "hybrid", 0.8, 0.81, stderr), old); len(got) > 0 {
			t.Errorf("%+v", got)
		}
	})
}
