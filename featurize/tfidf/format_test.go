package tfidf

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"giantstream/featurize/internal/datatest"
	"giantstream/internal/artifact"
)

func written(t testing.TB, m *Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestModelSurvivesWriteAndRead(t *testing.T) {
	texts := corpus(300)
	m := fit(t, DefaultOptions(), 2, texts...)
	got, err := Read(bytes.NewReader(written(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.TransformAll(texts, 1), got.TransformAll(texts, 1)) {
		t.Error("the model read transforms differently")
	}
	if got.Docs() != m.Docs() || !reflect.DeepEqual(features(got), features(m)) {
		t.Error("the model read names its features differently")
	}
}

func FuzzRead(f *testing.F) {
	good := written(f, fit(f, every(PECOS), 1, "red fox", "red dog", "été"))
	f.Add(good)
	f.Add(good[:40])
	f.Add([]byte(magic + "\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = datatest.Sealed(b)
		m, err := Read(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, artifact.ErrCorrupt) && !errors.Is(err, artifact.ErrUnknown) {
				t.Fatalf("error %v is neither ErrCorrupt nor ErrUnknown", err)
			}
			return
		}
		m.TransformAll([]string{"red fox été"}, 1)
		features(m)
	})
}

func FuzzTransform(f *testing.F) {
	m := fit(f, every(Default), 1, corpus(100)...)
	for _, s := range corpus(3) {
		f.Add(s)
	}
	f.Add("\xff\xf0\x9f")
	f.Fuzz(func(t *testing.T, text string) {
		x := m.TransformAll([]string{text}, 1)
		var sum float64
		for i, v := range x.Value {
			if i > 0 && x.Index[i] <= x.Index[i-1] {
				t.Fatal("indices do not ascend")
			}
			sum += float64(v) * float64(v)
		}
		if len(x.Value) > 0 && (sum < 0.999 || sum > 1.001) {
			t.Fatalf("squared length %v", sum)
		}
	})
}
