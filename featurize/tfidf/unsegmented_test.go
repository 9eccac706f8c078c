package tfidf

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
)

func TestScriptsWithoutSpaces(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"数据库系统", []string{"数据", "据库", "库系", "系统"}},
		{"書", []string{"書"}},
		{"iPhone15手机壳，黑色", []string{"iphone15", "手机", "机壳", "黑色"}},
		{"3月 2024年", []string{"3", "月", "2024", "年"}},
		{"食べ物データ", []string{"食べ", "べ物デ", "物デ", "データ"}},
		{"ﾃﾞｰﾀ ＡＢＣ１２ ﬁne", []string{"データ", "abc12", "fine"}}, // half and full width, ligature
		{"データベース", []string{"データ", "ータベ", "タベー", "ベース"}},     // decomposed voiced marks
		{"데이터 베이스", []string{"데이터", "베이스"}},
		{"ที่นี่ดี", []string{"ที่นี่ดี"}}, // vowels and tones belong to their consonants
		{"ລາວ", []string{"ລາວ"}},
		{"ខ្មែរ", []string{"ខ្មែរ"}}, // a consonant below another
		{"မြန်မာ", []string{"မြန်မာ"}},
		{"หน้า๑๒", []string{"หน้า", "๑๒"}},
		{"½ ™", []string{"1", "2", "tm"}},
	} {
		s := scanner{profile: Default}
		s.begin(tc.text)
		var got []string
		for w := s.next(); w != nil; w = s.next() {
			got = append(got, string(w))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q: words %q, want %q", tc.text, got, tc.want)
		}
	}
}

// Models of artifacts of version 1, and PECOS, know nothing of scripts.
func TestOldAnalysisStays(t *testing.T) {
	for _, p := range []Profile{PECOS, defaultV1} {
		s := scanner{profile: p}
		s.begin("数据库系统 Ａ")
		if got := string(s.next()); got != "数据库系统" {
			t.Errorf("profile %d: the first word is %q", p, got)
		}
	}
}

// fitV1 fits as programs before version 2 did.
func fitV1(t *testing.T, texts ...string) *Model {
	t.Helper()
	opt := DefaultOptions()
	opt.Profile = defaultV1
	f := &Fitter{opt: opt}
	f.AddAll(texts, 1)
	m, err := f.Fit()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Texts in scripts with spaces have the features that they always had, bit for bit.
func TestTextsWithSpacesKeepTheirFeatures(t *testing.T) {
	texts := corpus(500)
	for i, word := range []string{"Überstraße", "дом", "ελληνικά", "العربية", "हिन्दी", "데이터", "été", "naïve"} {
		for k := range 9 {
			texts[i*9+k] += " " + word + "-" + word
		}
	}
	old, now := fitV1(t, texts...), fit(t, DefaultOptions(), 2, texts...)
	if !slices.Equal(features(old), features(now)) {
		t.Fatal("the features differ")
	}
	if !reflect.DeepEqual(old.TransformAll(texts, 1), now.TransformAll(texts, 1)) {
		t.Error("the vectors differ")
	}
}

// A model of version 1 is read, analyses as it did, and is written as version 1.
func TestVersion1IsRead(t *testing.T) {
	texts := slices.Repeat([]string{"数据库系统 alpha", "数据库系统 beta", "ＡＢＣ alpha", "gamma delta"}, 5)
	old := fitV1(t, texts...)
	data := written(t, old)
	if data[8] != 1 {
		t.Fatalf("version %d, want 1", data[8])
	}
	got, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.TransformAll(texts, 1), old.TransformAll(texts, 1)) {
		t.Error("the model read analyses differently")
	}
	if !bytes.Equal(written(t, got), data) || got.Profile().String() != "default" {
		t.Errorf("the model is written differently, or its profile is %s", got.Profile())
	}
	now := written(t, fit(t, DefaultOptions(), 1, texts...))
	if now[8] != 2 {
		t.Errorf("a new model has version %d, want 2", now[8])
	}
}

func TestTermsOfScriptsWithoutSpacesRead(t *testing.T) {
	texts := []string{"数据库系统", "数据库管理", "大数据库", "天气预报", "好天气", "天气图"}
	m := fit(t, every(Default), 1, texts...)
	if !slices.Contains(features(m), "w:数据库") || !slices.Contains(features(m), "c:数据 ") {
		t.Errorf("features are %q", features(m))
	}
	terms := NewTerms(m, m.TransformAll(texts, 1))
	all := terms.Mean([]int32{0, 1, 2, 3, 4, 5})
	for _, term := range terms.Top(terms.Mean([]int32{0, 1, 2}), all, 5) {
		if strings.Contains(term.Text, " ") {
			t.Errorf("the term %q has a space", term.Text)
		}
	}
}

// Fitting and transforming must agree on every text, also where words are not cut at characters.
func FuzzUnsegmented(f *testing.F) {
	for _, s := range []string{"数据库", "ที่นี่ดี", "ខ្មែរ", "က္က္က္", "ー", "́数", "ก" + strings.Repeat("่", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := scanner{profile: Default}
		s.begin(text)
		for n := 0; ; n++ {
			w := s.next()
			if w == nil {
				break
			}
			if n > 20*len(text)+20 {
				t.Fatal("the words do not end")
			}
			if keys := Default.appendRuns(nil, w); len(keys) == 0 {
				t.Fatalf("word %q has no character runs", w)
			}
		}
		fitter, err := NewFitter(every(Default))
		if err != nil {
			t.Fatal(err)
		}
		fitter.AddAll([]string{text, "x", "y", "z"}, 1)
		m, err := fitter.Fit()
		if err != nil {
			return
		}
		if _, n := m.TransformCounting(text, sparse.Vector{}); n.Unknown > 0 {
			t.Fatalf("%d of %d n-grams are unknown to a model fitted to the text", n.Unknown, n.Total)
		}
	})
}
