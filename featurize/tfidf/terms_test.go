package tfidf

import (
	"fmt"
	"slices"
	"testing"
)

func TestTopTermsNameAGroup(t *testing.T) {
	texts := []string{
		"kernel module for audio", "kernel module for video", "a kernel module",
		"game of chess", "game of go", "a game",
	}
	m := fit(t, every(Default), 1, texts...)
	x := m.TransformAll(texts, 1)
	var got []string
	for _, term := range TopTerms(m, x, []int32{0, 1, 2}, 2) {
		got = append(got, term.Text)
	}
	if !slices.Equal(got, []string{"kernel", "module"}) {
		t.Errorf("three texts on kernel modules are named %q", got)
	}
	said := map[string]int{}
	for _, term := range TopTerms(m, x, []int32{3, 4, 5}, 10) {
		var a, b string
		if n, _ := fmt.Sscan(term.Text, &a, &b); n == 2 {
			said[b]++
		}
		if said[a]++; said[a] > 1 || term.Weight <= 0 {
			t.Errorf("%q says again what was said, or weighs %v", term.Text, term.Weight)
		}
	}
	if got := TopTerms(m, x, nil, 3); len(got) != 0 {
		t.Errorf("nobody's terms are %v", got)
	}
}
