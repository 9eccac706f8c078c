package study

import (
	"errors"
	"testing"

	"giantstream/train/generation"
)

// Texts of topics tell the neighbourhoods of nodes whose links were hidden.
func TestMatcherFindsHiddenNeighbourhoods(t *testing.T) {
	r, err := Matcher(t.Context(), options(t), graphOf(400), 0.2, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Instances < 300 || r.Hidden < 50 || r.Instances+r.Hidden > 400 || r.Weights == 0 || len(r.Levels) < 3 {
		t.Errorf("report %+v", r)
	}
	labels := r.Levels[len(r.Levels)-1]
	// A topic has 50 nodes, of which a node is linked to some 8: a guess within the topic is right
	// once in 6 times.
	if r.Levels[0].P1 < 0.8 || labels.P1 < 0.1 || labels.Recall10 < 0.1 {
		t.Errorf("first level %+v, labels %+v", r.Levels[0], labels)
	}
	if _, err := Matcher(t.Context(), options(t), graphOf(400), 1e-9, 0, 1); !errors.Is(err, generation.ErrTooFew) {
		t.Errorf("nothing hidden: got %v, want ErrTooFew", err)
	}
}
