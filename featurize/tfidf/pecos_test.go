package tfidf

import (
	"math"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
)

// pecosTexts were fitted with libpecos 1.2.8 under GIANT's three vectorizers
// (word 2-grams with a budget of 5); the golden values below are its output.
var pecosTexts = []string{"the red fox  jumps", "the red\tdog Jumps.", "café au lait 漢字 a",
	"red fox red fox the end", "a b c d", "ab cd the fox"}

func pecosModel(t *testing.T) *Model {
	t.Helper()
	opt := PECOSOptions()
	opt.Parts[Word2].MaxFeatures = 5
	return fit(t, opt, 2, pecosTexts...)
}

func TestPECOSProfileHasTheSameFeatures(t *testing.T) {
	want := []string{
		"w:Jumps.", "w:ab", "w:au", "w:b", "w:c", "w:café", "w:cd", "w:d", "w:end", "w:jumps", "w:lait",
		"w:red\tdog", "w:漢字", "w:a", "w:red", "w:fox", "w:the", "w:the fox", "w:the red", "w:the red\tdog", "w:漢字 a",
		"w:red fox", "c:\tdo", "c: Ju", "c: ab", "c: au", "c: b ", "c: c ", "c: ca", "c: cd", "c: d ", "c: en",
		"c: ju", "c: la", "c: 漢字", "c:Jum", "c:ab ", "c:afé", "c:ait", "c:au ", "c:caf", "c:cd ", "c:d\td", "c:dog",
		"c:ed\t", "c:end", "c:fé ", "c:it ", "c:jum", "c:lai", "c:nd ", "c:og ", "c:ps ", "c:ps.", "c:s. ", "c:漢字 ",
		"c: a ", "c:ed ", "c:mps", "c:ump", "c: fo", "c: re", "c:fox", "c:ox ", "c:red", "c: th", "c:he ", "c:the",
	}
	if got := features(pecosModel(t)); !slices.Equal(got, want) {
		t.Errorf("features\n%q, want\n%q", got, want)
	}
}

// TestPECOSProfileHasTheSameWeights compares words and pairs; the weights of
// character runs differ on purpose, as PECOS transforms others than it fitted.
func TestPECOSProfileHasTheSameWeights(t *testing.T) {
	m := pecosModel(t)
	for _, tc := range []struct {
		text string
		want sparse.Vector
	}{
		{pecosTexts[0], sparse.Vector{Index: []int32{9, 14, 15, 16, 18, 21},
			Value: []float32{0.46198, 0.291477, 0.170503, 0.076668, 0.488286, 0.308074}}},
		{pecosTexts[3], sparse.Vector{Index: []int32{8, 14, 15, 16, 21},
			Value: []float32{0.324545, 0.40953, 0.239559, 0.05386, 0.57735}}},
		{pecosTexts[5], sparse.Vector{Index: []int32{1, 6, 15, 16, 17},
			Value: []float32{0.392496, 0.392496, 0.144859, 0.065137, 0.57735}}},
	} {
		got := m.Transform(tc.text, sparse.Vector{})
		n := len(tc.want.Index)
		if !slices.Equal(got.Index[:n], tc.want.Index) {
			t.Errorf("%q: features %v, want %v", tc.text, got.Index[:n], tc.want.Index)
			continue
		}
		for k, want := range tc.want.Value {
			if math.Abs(float64(got.Value[k]-want)) > 2e-6 {
				t.Errorf("%q: %s weighs %v, want %v", tc.text, m.Feature(int(got.Index[k])), got.Value[k], want)
			}
		}
	}
}
