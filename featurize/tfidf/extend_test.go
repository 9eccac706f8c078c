package tfidf

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
)

// textsOf draws texts of words from lo to hi, each with a letter of its own.
func textsOf(r *rand.Rand, n, lo, hi int) []string {
	out := make([]string, n)
	for i := range out {
		var words []string
		for range 4 + r.IntN(12) {
			k := lo + r.IntN(hi-lo)
			words = append(words, fmt.Sprintf("%c%c%c%d", 'a'+k%26, 'a'+k/26%26, 'a'+k%7, k))
		}
		out[i] = strings.Join(words, " ")
	}
	return out
}

func fitted(t *testing.T, texts []string) *Model {
	t.Helper()
	f, err := NewFitter(Default.Options())
	if err != nil {
		t.Fatal(err)
	}
	f.AddAll(texts, 1)
	m, err := f.Fit()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An extended model keeps every feature's number, name and weight, says the same of texts without new n-grams, and
// survives its artifact and another extension.
func TestExtendKeepsWhatWasThere(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		old, fresh := textsOf(r, 300, 0, 120), textsOf(r, 200, 80, 220)
		m := fitted(t, old)
		for round, most := range []int{1 << 20, 50, 1 << 20} {
			other := fitted(t, fresh)
			more, err := m.Extend(other, m.Docs()+len(fresh), most)
			if err != nil {
				t.Fatal(err)
			}
			if gained := more.Dim() - m.Dim(); gained < 1 && round == 0 || gained > most {
				t.Errorf("seed %d: %d features were gained, at most %d are wanted", seed, gained, most)
			}
			names := map[string]bool{}
			for i := range more.Dim() {
				name := more.Feature(i)
				if names[name] {
					t.Errorf("feature %q is there twice", name)
				}
				names[name] = true
				if i < m.Dim() && (name != m.Feature(i) || more.IDF(i) != m.IDF(i) || more.PartOf(i) != m.PartOf(i)) {
					t.Fatalf("feature %d was %s and is %s", i, m.Feature(i), name)
				}
				if w := more.IDF(i); !(w >= 0 && w < 100) {
					t.Errorf("feature %d has weight %v", i, w)
				}
			}
			checkRows(t, m, more, old, fresh)
			var file bytes.Buffer
			if err := more.Write(&file); err != nil {
				t.Fatal(err)
			}
			read, err := Read(bytes.NewReader(file.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range slices.Concat(old[:50], fresh[:50]) {
				if a, b := more.Transform(text, sparse.Vector{}), read.Transform(text, sparse.Vector{}); !reflect.DeepEqual(a, b) {
					t.Fatalf("%q read back: %v, want %v", text, b, a)
				}
			}
			m, fresh = read, textsOf(r, 200, 150, 400)
		}
	}
}

// checkRows compares the rows of a model and of the one that it was extended to.
func checkRows(t *testing.T, m, more *Model, old, fresh []string) {
	t.Helper()
	known := 0
	for _, text := range slices.Concat(old, fresh) {
		a, before := m.TransformCounting(text, sparse.Vector{})
		b, after := more.TransformCounting(text, sparse.Vector{})
		if !slices.IsSorted(b.Index) || after.Unknown > before.Unknown || after.Total != before.Total {
			t.Fatalf("%q: %v with %+v, before with %+v", text, b.Index, after, before)
		}
		at, _ := slices.BinarySearch(b.Index, int32(m.Dim()))
		if !slices.Equal(a.Index, b.Index[:at]) {
			t.Fatalf("%q: the features that were there are %v, were %v", text, b.Index[:at], a.Index)
		}
		if at == len(b.Index) {
			known++
			if !slices.Equal(a.Value, b.Value) {
				t.Fatalf("%q has no new n-gram, and other values: %v, were %v", text, b.Value, a.Value)
			}
		}
	}
	if known == 0 {
		t.Error("no text is without new n-grams: the comparison says little")
	}
}
