package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"
)

// Every mutation fits the code as it is, changes one line and leaves a file that parses. Whether tests notice it takes
// an hour to find out: make mutate.
func TestMutationsFitTheCode(t *testing.T) {
	const root = "../../.."
	for i, m := range mutations {
		changed, err := m.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		original, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := differentLines(original, changed); n != 1 {
			t.Errorf("mutation %d, %q, changes %d lines instead of one", i+1, m.what, n)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, changed, 0); err != nil {
			t.Errorf("mutation %d, %q: %v", i+1, m.what, err)
		}
	}
}

// A mutation whose text is gone is an error that names it.
func TestMutationWithoutItsTextIsRefused(t *testing.T) {
	m := mutation{file: "cmd/dev/mutate/main.go", what: "gone", old: "no such " + "text", new: ""}
	if _, err := m.apply("../../.."); err == nil {
		t.Error("a mutation was applied whose text is not in its file")
	}
}

func differentLines(a, b []byte) (n int) {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	if len(x) != len(y) {
		return max(len(x), len(y))
	}
	for i := range x {
		if !bytes.Equal(x[i], y[i]) {
			n++
		}
	}
	return n
}
