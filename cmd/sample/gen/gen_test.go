package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func fixture(t *testing.T) graph {
	t.Helper()
	packages, err := load(filepath.Join("testdata", "src"))
	if err != nil {
		t.Fatal(err)
	}
	return newGraph(packages)
}

func TestNodesAreThePublicDeclarations(t *testing.T) {
	var got []string
	for _, n := range fixture(t).nodes {
		got = append(got, n.ID+" "+n.Label)
	}
	want := []string{
		"money money",
		"money.Add money",
		"money.Amount money",
		"money.EUR money", // stands for its group
		"money.Zero money",
		"shop/cart shop",
		"shop/cart.Cart shop",
		"shop/cart.Cart.Total shop",
		"shop/cart.Item shop",
		"shop/cart.T shop",
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes\n got %q\nwant %q", got, want)
	}
}

func TestEdgesAreWhatDeclarationsMention(t *testing.T) {
	var got []string
	for _, e := range fixture(t).edges {
		got = append(got, e.Src+" "+e.Kind+" "+e.Dst)
	}
	want := []string{
		"money.Add member money",
		"money.Add types money.Amount",
		"money.Amount member money",
		"money.EUR member money",
		"money.Zero member money",
		"money.Zero types money.Amount", // in its type and in its doc: one edge
		"shop/cart imports money",
		"shop/cart doc money.EUR", // [cash.USD] stands in the group
		"shop/cart.Cart types money.Amount",
		"shop/cart.Cart member shop/cart",
		"shop/cart.Cart doc shop/cart.Cart.Total",
		"shop/cart.Cart types shop/cart.Item",
		"shop/cart.Cart.Total types money.Amount",
		"shop/cart.Cart.Total receiver shop/cart.Cart", // and not cart.T: T is a parameter
		"shop/cart.Item types money.Amount",
		"shop/cart.Item member shop/cart",
		"shop/cart.Item doc shop/cart.Cart",
		"shop/cart.T member shop/cart",
	}
	if !slices.Equal(got, want) {
		t.Errorf("edges\n got %q\nwant %q", got, want)
	}
}

func TestTextIsSignatureAndDoc(t *testing.T) {
	texts := map[string]string{}
	for _, n := range fixture(t).nodes {
		texts[n.ID] = n.Text
	}
	for id, want := range map[string]string{
		"money":                "package money\n\nPackage money holds amounts.",
		"money.Zero":           "const Zero Amount = 0\n\nZero is no money. See [Amount].",
		"shop/cart.Cart.Total": "func (c *Cart[T]) Total(extra T) cash.Amount\n\nTotal sums up.",
	} {
		if got := texts[id]; strings.TrimSpace(got) != want {
			t.Errorf("text of %s\n got %q\nwant %q", id, got, want)
		}
	}
	if strings.Contains(texts["shop/cart.Cart"], "note") {
		t.Errorf("unexported field in %q", texts["shop/cart.Cart"])
	}
}

func TestTruncateCutsAtASpace(t *testing.T) {
	long := strings.Repeat("größe ", maxPart)
	got := truncate(long)
	if len(got) > maxPart+len(" …") || !strings.HasSuffix(got, "größe …") {
		t.Errorf("truncated to %d bytes, ending in %q", len(got), got[len(got)-20:])
	}
	// Without a space the cut must still fall between two characters.
	if got := truncate(strings.Repeat("ß", maxPart)); strings.ContainsRune(got, '\uFFFD') {
		t.Error("cut through a character")
	}
}

func TestSameTreeSameBytes(t *testing.T) {
	read := func() [2][]byte {
		out := t.TempDir()
		if err := run("testdata", out); err != nil {
			t.Fatal(err)
		}
		var b [2][]byte
		for i, name := range []string{"nodes.jsonl.gz", "edges.jsonl.gz"} {
			var err error
			if b[i], err = os.ReadFile(filepath.Join(out, name)); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	first, second := read(), read()
	if !bytes.Equal(first[0], second[0]) || !bytes.Equal(first[1], second[1]) {
		t.Error("two runs over the same tree differ")
	}
}

func TestEmptyTreeIsAnError(t *testing.T) {
	if err := run(t.TempDir(), t.TempDir()); err == nil {
		t.Error("no error for a tree without packages")
	}
}
