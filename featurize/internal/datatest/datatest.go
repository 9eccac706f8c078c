// Package datatest loads the shared real graphs for tests and benchmarks.
package datatest

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
)

// Graph is a text-attributed graph; Adjacency is symmetric, n × n, without
// self-loops.
type Graph struct {
	Texts     []string
	Adjacency *sparse.Matrix
}

// Load loads the graph of that name, or skips the test where it is missing.
// The folder is $GIANTSTREAM_DATA, or ../shared/data beside the repository.
func Load(t testing.TB, name string) Graph {
	t.Helper()
	dir := os.Getenv("GIANTSTREAM_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir = filepath.Join(dir, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no data at %s; set GIANTSTREAM_DATA to the folder that holds %s", dir, name)
	}
	var g Graph
	at := map[string]int32{}
	lines(t, filepath.Join(dir, "nodes.jsonl.gz"), func(n struct{ ID, Text string }) {
		at[n.ID] = int32(len(g.Texts))
		g.Texts = append(g.Texts, n.Text)
	})
	rows := make([][]int32, len(g.Texts))
	lines(t, filepath.Join(dir, "edges.jsonl.gz"), func(e struct{ Src, Dst string }) {
		a, okA := at[e.Src]
		b, okB := at[e.Dst]
		if okA && okB && a != b {
			rows[a], rows[b] = append(rows[a], b), append(rows[b], a)
		}
	})
	g.Adjacency = &sparse.Matrix{Cols: len(rows), Start: []int64{0}}
	for _, row := range rows {
		slices.Sort(row)
		g.Adjacency.Append(sparse.Vector{Index: slices.Compact(row)})
	}
	return g
}

func lines[T any](t testing.TB, path string, each func(T)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(z); ; {
		var v T
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		each(v)
	}
}
