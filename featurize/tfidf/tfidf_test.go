package tfidf

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
)

// every keeps everything that occurs.
func every(p Profile) Options {
	l := Limits{MaxFeatures: 1000, MaxDF: 1}
	return Options{Profile: p, Parts: [numParts]Limits{l, l, l}}
}

func fit(t testing.TB, opt Options, workers int, texts ...string) *Model {
	t.Helper()
	f, err := NewFitter(opt)
	if err != nil {
		t.Fatal(err)
	}
	f.AddAll(texts, workers)
	m, err := f.Fit()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func features(m *Model) []string {
	var s []string
	for i := range m.Dim() {
		s = append(s, m.Feature(i))
	}
	return s
}

func TestWords(t *testing.T) {
	for _, tc := range []struct {
		profile Profile
		text    string
		want    []string
	}{
		{Default, "Kernel-module, X.509;\tcafé\u0301 ÉTÉ", []string{"kernel", "module", "x", "509",
			"café\u0301", "été"}},
		{Default, "", nil},
		{Default, " -- ", nil},
		{Default, "a\xffb", []string{"a", "b"}},
		{Default, "हिन्दी 漢字。かな", []string{"हिन्दी", "漢字", "かな"}},
		{PECOS, " Kernel-module,  x\ny ", []string{"Kernel-module,", "x\ny"}},
	} {
		s := scanner{profile: tc.profile, text: tc.text}
		var got []string
		for w := s.next(); w != nil; w = s.next() {
			got = append(got, string(w))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v %q: words %q, want %q", tc.profile, tc.text, got, tc.want)
		}
	}
}

func TestChar3PadsWords(t *testing.T) {
	for word, want := range map[string][]string{
		"a": {" a "}, "ab": {" ab", "ab "}, "été": {" ét", "été", "té "}, "abcd": {" ab", "abc", "bcd", "cd "},
	} {
		var got []string
		for _, key := range appendChar3(nil, []byte(word)) {
			got = append(got, char3String(key))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestFeaturesOfASmallCorpus(t *testing.T) {
	opt := every(Default)
	opt.Parts[Char3].MaxFeatures = 0
	m := fit(t, opt, 1, "red fox", "red dog", "blue fox runs", "cat")
	want := []string{"w:blue", "w:cat", "w:dog", "w:runs", "w:fox", "w:red",
		"w:blue fox", "w:fox runs", "w:red dog", "w:red fox"}
	if got := features(m); !slices.Equal(got, want) {
		t.Fatalf("features %q, want %q", got, want)
	}
	// "red red dog moon": red twice, dog once; the pair "red dog" alone in its part.
	red, dog := 2*math.Log(4.0/3), math.Log(4.0/2)
	norm := math.Hypot(red, dog) * math.Sqrt2
	got := m.Transform("Red red DOG moon", sparse.Vector{})
	wantV := sparse.Vector{Index: []int32{2, 5, 8}, Value: []float32{float32(dog / norm), float32(red / norm),
		float32(1 / math.Sqrt2)}}
	if !slices.Equal(got.Index, wantV.Index) {
		t.Fatalf("index %v, want %v", got.Index, wantV.Index)
	}
	for i := range got.Value {
		if math.Abs(float64(got.Value[i]-wantV.Value[i])) > 1e-6 {
			t.Errorf("%s: %v, want %v", m.Feature(int(got.Index[i])), got.Value[i], wantV.Value[i])
		}
	}
}

func TestBudgetKeepsTheMostFrequent(t *testing.T) {
	opt := Options{Parts: [numParts]Limits{Word1: {MaxFeatures: 2, MinDF: 1, MaxDF: 0.8}}}
	m := fit(t, opt, 1, "the a b", "the a b", "the a c", "the b d", "the e e e")
	// "the" is in every text; e is frequent, but in one document only.
	if got, want := features(m), []string{"w:a", "w:b"}; !slices.Equal(got, want) {
		t.Errorf("features %q, want %q", got, want)
	}
}

func TestFitDependsOnTheTextsAlone(t *testing.T) {
	texts := corpus(3000)
	want := fit(t, DefaultOptions(), 1, texts...)
	wantX := want.TransformAll(texts, 1)
	shuffled := slices.Clone(texts)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(texts), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j],
			shuffled[i]
	})
	f, err := NewFitter(DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	f.AddAll(shuffled[:1000], 3)
	for _, text := range shuffled[1000:1500] {
		f.Add(text)
	}
	f.AddAll(shuffled[1500:], 2)
	got, err := f.Fit()
	if err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := want.Write(&a); err != nil {
		t.Fatal(err)
	}
	if err := got.Write(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("order of texts, calls or workers changed the model")
	}
	if !reflect.DeepEqual(wantX, got.TransformAll(texts, 4)) {
		t.Error("workers changed the matrix")
	}
	for i, text := range texts[:50] {
		if v := got.Transform(text, sparse.Vector{}); !slices.Equal(v.Value, wantX.Row(i).Value) {
			t.Fatalf("row %d differs from Transform", i)
		}
	}
}

func TestTransformReusesItsDestination(t *testing.T) {
	texts := corpus(100)
	m := fit(t, DefaultOptions(), 1, texts...)
	v := m.Transform(texts[0], sparse.Vector{})
	again := m.Transform(texts[0], v)
	if &again.Index[0] != &v.Index[0] || &again.Value[0] != &v.Value[0] {
		t.Error("a destination with room for the vector was not used")
	}
}

func TestNothingToFit(t *testing.T) {
	f, err := NewFitter(DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	f.AddAll([]string{"", "--"}, 2)
	if _, err := f.Fit(); !errors.Is(err, ErrNoText) {
		t.Errorf("got %v, want ErrNoText", err)
	}
}

func TestOptionsFaultsAreAllNamed(t *testing.T) {
	_, err := NewFitter(Options{Profile: 9, Parts: [numParts]Limits{Word1: {MaxFeatures: 1, MinDF: -1, MaxDF: 2}}})
	for _, want := range []string{"profile 9", "min df -1", "max df 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
}

// corpus returns texts of words drawn by a Zipf law.
func corpus(n int) []string {
	r := rand.New(rand.NewPCG(7, 7))
	z := rand.NewZipf(r, 1.2, 3, 5000)
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range 5 + r.IntN(40) {
			k := z.Uint64()
			b.WriteString(string([]rune{rune('a' + k%26), rune('a' + k/26%26), rune('à' + k/676)}))
			b.WriteByte(" -\nZ"[r.IntN(4)])
		}
		texts[i] = b.String()
	}
	return texts
}

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

// A model of version 3 has other numbers for the features of its keys, which its artifact keeps.
func TestNumbersOfFeatures(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	texts := textsOf(r, 300, 0, 120)
	m := fitted(t, texts)
	column := make([]int32, m.Dim())
	for id, c := range r.Perm(m.Dim()) {
		column[id] = int32(c)
	}
	other := m.Renumbered(column)
	var file bytes.Buffer
	if err := other.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := Read(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for id, c := range column {
		i := int(c)
		if read.Feature(i) != m.Feature(id) || read.IDF(i) != m.IDF(id) || read.PartOf(i) != m.PartOf(id) {
			t.Fatalf("feature %d is %s, want %s", i, read.Feature(i), m.Feature(id))
		}
	}
	for _, text := range texts {
		a, b := m.Transform(text, sparse.Vector{}), read.Transform(text, sparse.Vector{})
		want := map[int32]float32{}
		for k, id := range a.Index {
			want[column[id]] = a.Value[k]
		}
		got := map[int32]float32{}
		for k, i := range b.Index {
			got[i] = b.Value[k]
		}
		if !slices.IsSorted(b.Index) || !maps.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	}
}

// Counts, weighed, are what Transform returns, to the bit, also for a model with other numbers of features.
func TestWeighedCountsAreTheFeatures(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := fitted(t, textsOf(r, 300, 0, 120))
		column := make([]int32, m.Dim())
		for id, c := range r.Perm(m.Dim()) {
			column[id] = int32(c)
		}
		more := m.Renumbered(column)
		var counts sparse.Vector
		for _, m := range []*Model{m, more} {
			for _, text := range append(textsOf(r, 50, 0, 300), "", "-") {
				want, ngrams := m.TransformCounting(text, sparse.Vector{})
				var n NGrams
				if counts, n = m.Counts(text, counts); n != ngrams {
					t.Errorf("%q: %+v n-grams, want %+v", text, n, ngrams)
				}
				if counts = m.Weigh(counts); !slices.Equal(counts.Index, want.Index) ||
					!slices.Equal(counts.Value, want.Value) {
					t.Fatalf("seed %d, %q: %v, want %v", seed, text, counts, want)
				}
			}
		}
	}
}
