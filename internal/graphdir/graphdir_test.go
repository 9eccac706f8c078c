package graphdir

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func write(t *testing.T, path, data string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(data))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "nodes.jsonl.gz"),
		`{"id":"b","text":"two"}`+"\n"+`{"id":"a","text":"one","label":"x"}`+"\n"+`{"id":"c"}`)
	write(t, filepath.Join(dir, "edges.jsonl.gz"),
		`{"src":"a","dst":"b"}{"src":"b","dst":"a"}{"src":"c","dst":"a"}{"src":"c","dst":"c"}{"src":"c","dst":"nobody"}`)
	g, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &Graph{IDs: []string{"a", "b", "c"}, Texts: []string{"one", "two", ""}, Classes: []string{"x", "", ""},
		Neighbours: g.Neighbours}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("got %+v, want %+v", g, want)
	}
	for i, want := range [][]int32{{1, 2}, {0}, {0}} {
		if got := g.Neighbours.Row(i).Index; !slices.Equal(got, want) {
			t.Errorf("neighbours of %s: %v, want %v", g.IDs[i], got, want)
		}
	}
}

func TestReadNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	nodes := filepath.Join(dir, "nodes.jsonl.gz")
	if _, err := Read(dir); !os.IsNotExist(err) {
		t.Errorf("an empty folder: %v", err)
	}
	write(t, nodes, `{"id":1}`)
	if _, err := Read(dir); err == nil || err.Error()[:len(nodes)] != nodes {
		t.Errorf("a number as id: %v, want an error that begins with %s", err, nodes)
	}
}
