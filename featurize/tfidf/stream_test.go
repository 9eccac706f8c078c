package tfidf

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"giantstream/featurize/sparse"
)

func fitter(t testing.TB, opt Options) *Fitter {
	t.Helper()
	f, err := NewFitter(opt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// artifactOf returns the bytes of the fit, which say all about it.
func artifactOf(t testing.TB, f *Fitter) []byte {
	t.Helper()
	m, err := f.Fit()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rareTexts have many words that occur once and a few that occur often.
func rareTexts(n int) []string {
	r := rand.New(rand.NewPCG(5, 6))
	z := rand.NewZipf(r, 1.3, 2, 300)
	texts := make([]string, n)
	for i := range texts {
		var b bytes.Buffer
		for range 20 {
			fmt.Fprintf(&b, "w%d ", z.Uint64())
		}
		for range 5 {
			fmt.Fprintf(&b, "%x ", r.Uint64())
		}
		texts[i] = b.String()
	}
	return texts
}

// TestBudgetBoundsMemoryAndError compares the document frequencies under a
// budget with the exact ones: never above, and below by no more than Undercount.
func TestBudgetBoundsMemoryAndError(t *testing.T) {
	texts := rareTexts(6000)
	opt := DefaultOptions()
	opt.MemoryBudget = minBudget
	f, exact := fitter(t, opt), fitter(t, DefaultOptions())
	for i, text := range texts {
		f.Add(text)
		exact.Add(text)
		c := f.counters[0]
		pairs, chars, words := c.limits()
		if len(c.pairs.keys) > pairs || len(c.chars.keys) > chars || c.wordBytes() > words {
			t.Fatalf("after %d texts: %d pairs, %d runs, %d bytes of words, want at most %d, %d, %d",
				i+1, len(c.pairs.keys), len(c.chars.keys), c.wordBytes(), pairs, chars, words)
		}
	}
	frequencies := func(f *Fitter) (df [numParts]map[string]int32) {
		words, ids := f.mergeWords()
		m := &Model{words: words}
		for p := range df {
			df[p] = map[string]int32{}
			for part := range m.first {
				m.first[part] = 0
				if part > p {
					m.first[part] = 1
				}
			}
			for _, ft := range f.candidates(Part(p), ids) {
				m.keys = []uint64{ft.key}
				df[p][m.Feature(0)] = ft.df
			}
		}
		return df
	}
	got, want := frequencies(f), frequencies(exact)
	for p := range numParts {
		bound := int32(f.Undercount(p))
		if p != Char3 && bound == 0 {
			t.Errorf("%s: nothing was forgotten; the test needs more texts", partNames[p])
		}
		forgotten := 0
		for name, df := range want[p] {
			at, ok := got[p][name]
			if at > df || at < df-bound {
				t.Errorf("%s is in %d documents, counted %d, bound %d", name, df, at, bound)
			}
			if !ok {
				forgotten++
			}
		}
		t.Logf("%s: %d of %d forgotten, bound %d documents", partNames[p], forgotten, len(want[p]), bound)
	}
	// Character runs are forgotten by their own limit alone: the bound is 2·M/c.
	all := fitter(t, DefaultOptions())
	all.AddAll(texts, 1)
	counts := 0
	for _, df := range frequencies(all)[Char3] {
		counts += int(df)
	}
	_, limit, _ := f.counters[0].limits()
	if bound := f.Undercount(Char3); bound > 2*counts/limit {
		t.Errorf("character runs: bound %d, want at most 2·%d/%d", bound, counts, limit)
	}
}

func TestBudgetedFitIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	texts := rareTexts(3000)
	var want []byte
	for _, workers := range []int{1, 2, 5} {
		opt := DefaultOptions()
		opt.MemoryBudget = minBudget
		f := fitter(t, opt)
		f.AddAll(texts, workers)
		got := artifactOf(t, f)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d workers fit otherwise", workers)
		}
	}
}

func TestUnknownNGrams(t *testing.T) {
	words := Options{Parts: [numParts]Limits{Word1: {MaxFeatures: 10, MaxDF: 1}, Word2: {MaxFeatures: 10, MaxDF: 1}}}
	m := fit(t, words, 1, "red fox", "red dog")
	for _, tc := range []struct {
		text string
		want NGrams
	}{
		{"", NGrams{}},
		{"red fox", NGrams{3, 0}},
		{"red red dog", NGrams{5, 1}},  // "red red" is no pair of the fit
		{"blue fox dog", NGrams{5, 3}}, // blue, blue fox, fox dog
	} {
		v, got := m.TransformCounting(tc.text, sparse.Vector{})
		if got != tc.want {
			t.Errorf("%q: %+v, want %+v", tc.text, got, tc.want)
		}
		if want := m.Transform(tc.text, sparse.Vector{}); !reflect.DeepEqual(v, want) {
			t.Errorf("%q: counting gave %v, not counting %v", tc.text, v, want)
		}
	}
	chars := fit(t, every(Default), 1, "red")
	_, got := chars.TransformCounting("bed", sparse.Vector{})
	if want := (NGrams{4, 3}); got != want || got.Share() != 0.75 { // bed, " be", "bed" are new, "ed " is known
		t.Errorf("%+v, want %+v", got, want)
	}
}
