package generation

import (
	"errors"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

// Nodes often arrive before their edges. A generation begun between the two
// fails, and the next attempt is one on all that has come since.
func TestGenerationWithoutLinksIsForgotten(t *testing.T) {
	log := &commits{}
	graph := topics(60, 3)
	for _, r := range graph {
		log.add(1, rows.Row{NodeID: r.NodeID, Text: r.Text})
	}
	b := builder(&memstore.Store{})
	for range 2 {
		if _, err := b.BuildNext(t.Context(), log.at, UntilReady); !errors.Is(err, ErrTooFew) {
			t.Fatalf("without links: %v, want ErrTooFew", err)
		}
	}
	for _, r := range graph {
		log.add(2, r)
	}
	doc, err := b.BuildNext(t.Context(), log.at, UntilReady)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Generation != 1 || doc.Cut[0] != 2 {
		t.Errorf("generation %d at cut %v, want 1 at manifest 2", doc.Generation, doc.Cut)
	}
}
