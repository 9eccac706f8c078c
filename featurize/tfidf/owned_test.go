package tfidf

import (
	"errors"
	"slices"
	"testing"
)

func TestOwned(t *testing.T) {
	all := []string{"red pen", "red ink", "secret quill of Zyx", "blue pen"}
	owned, err := NewOwned(DefaultOptions(), all[2:3])
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append([]string{"a quill"}, all[:2]...) {
		owned.Share(text)
	}
	fitter, err := NewFitter(DefaultOptions().KeepAll())
	if err != nil {
		t.Fatal(err)
	}
	fitter.AddAll(all, 1)
	vocabulary, err := fitter.Fit()
	if err != nil {
		t.Fatal(err)
	}
	names := owned.NGramsOf(vocabulary)
	for name, want := range map[string]bool{"w:secret": true, "w:zyx": true, "w:of zyx": true, "c:zyx": true,
		"w:quill": false, "w:pen": false, "w:blue": false, "c:ill": false} {
		if got := slices.Contains(names, name); got != want {
			t.Errorf("%s is owned: %t, want %t (of %q)", name, got, want, names)
		}
	}
	if _, err := NewOwned(DefaultOptions(), []string{"", "…"}); !errors.Is(err, ErrNoText) {
		t.Errorf("texts without a word: %v", err)
	}
}
