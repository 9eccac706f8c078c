package fit

import (
	"fmt"
	"math"
	"testing"

	"giantstream/featurize/tfidf"
)

// vocabularyOf is fitted to 100 texts, of which some have the word.
func vocabularyOf(t *testing.T, with int) (v *tfidf.Model, feature int32) {
	t.Helper()
	var texts []string
	for i := range 100 {
		word := "other"
		if i < with {
			word = "season"
		}
		texts = append(texts, fmt.Sprintf("%s filler%d", word, i))
	}
	fitter, err := tfidf.NewFitter(tfidf.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	fitter.AddAll(texts, 1)
	if v, err = fitter.Fit(); err != nil {
		t.Fatal(err)
	}
	for i := range v.Dim() {
		if v.Feature(i) == "w:season" {
			return v, int32(i)
		}
	}
	t.Fatal("the word is no feature")
	return nil, 0
}

// An n-gram that as many texts have as before has the parent's whole share, and one that is new in most of its texts
// next to nothing of it.
func TestShareOfTheParent(t *testing.T) {
	for _, c := range []struct {
		before, now int
		want        float64
	}{{20, 20, .4}, {5, 40, .4 * 6 / (.4*6 + .6*41)}, {40, 20, .4 * 41 / (.4*41 + .6*21)}} {
		old, at := vocabularyOf(t, c.before)
		v, feature := vocabularyOf(t, c.now)
		if got := shareOf(.4, old, at, v, feature); math.Abs(float64(got)-c.want) > 1e-3 {
			t.Errorf("of %d texts before and %d now: %v, want %v", c.before, c.now, got, c.want)
		}
	}
}
