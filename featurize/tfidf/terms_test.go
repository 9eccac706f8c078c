package tfidf

import (
	"fmt"
	"slices"
	"testing"
)

func TestTopTermsSetAGroupApart(t *testing.T) {
	texts := []string{
		"the kernel module for the audio", "the kernel module for the video", "the kernel module of it",
		"the game for chess", "the game for two", "the card game",
	}
	m := fit(t, every(Default), 1, texts...)
	terms := NewTerms(m, m.TransformAll(texts, 1))
	all := terms.Mean([]int32{0, 1, 2, 3, 4, 5})
	var got []string
	for _, term := range terms.Top(terms.Mean([]int32{0, 1, 2}), all, 2) {
		got = append(got, term.Text)
	}
	if !slices.Equal(got, []string{"kernel", "module"}) {
		t.Errorf("three texts on kernel modules are named %q", got)
	}
	said := map[string]int{}
	for _, term := range terms.Top(terms.Mean([]int32{3, 4, 5}), all, 10) {
		var a, b string
		if n, _ := fmt.Sscan(term.Text, &a, &b); n == 2 {
			said[b]++
		}
		if said[a]++; said[a] > 1 || term.Weight <= 0 {
			t.Errorf("%q says again what was said, or weighs %v", term.Text, term.Weight)
		}
	}
	if said["the"] > 0 || said["game"] == 0 {
		t.Errorf("three texts on games are named %v", said)
	}
	if got := terms.Top(terms.Mean(nil), all, 3); len(got) != 0 {
		t.Errorf("nobody's terms are %v", got)
	}
}
