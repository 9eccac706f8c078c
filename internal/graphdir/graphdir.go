// Package graphdir reads a graph from a folder into memory, for tests and benchmarks. (The service
// reads through package ingest.) The folder has two gzipped files of JSON lines: nodes.jsonl.gz
// (id, text, label) and edges.jsonl.gz (src, dst).
package graphdir

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"giantstream/featurize/sparse"
)

// Graph has the fields of train.Graph, and converts to it.
type Graph struct {
	IDs, Texts, Classes []string // in ascending order of IDs
	// Neighbours is n × n, symmetric, without values and self-loops. Edges of unknown nodes are
	// left out.
	Neighbours *sparse.Matrix
}

// Read reads the graph of a folder.
func Read(dir string) (*Graph, error) {
	type node struct{ ID, Text, Label string }
	var nodes []node
	for n, err := range Lines[node](filepath.Join(dir, "nodes.jsonl.gz")) {
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.ID, b.ID) })
	g := &Graph{}
	position := make(map[string]int32, len(nodes))
	for i, n := range nodes {
		position[n.ID] = int32(i)
		g.IDs, g.Texts, g.Classes = append(g.IDs, n.ID), append(g.Texts, n.Text), append(g.Classes, n.Label)
	}
	var edges [][2]int32
	for e, err := range Lines[struct{ Src, Dst string }](filepath.Join(dir, "edges.jsonl.gz")) {
		if err != nil {
			return nil, err
		}
		a, known := position[e.Src]
		b, too := position[e.Dst]
		if known && too {
			edges = append(edges, [2]int32{a, b})
		}
	}
	g.Neighbours = Undirected(len(nodes), edges)
	return g, nil
}

// Undirected makes the symmetric adjacency of n nodes, without self-loops and duplicates.
func Undirected(n int, edges [][2]int32) *sparse.Matrix {
	rows := make([][]int32, n)
	for _, e := range edges {
		if a, b := e[0], e[1]; a != b {
			rows[a], rows[b] = append(rows[a], b), append(rows[b], a)
		}
	}
	m := &sparse.Matrix{Cols: n, Start: []int64{0}}
	for _, row := range rows {
		slices.Sort(row)
		m.Append(sparse.Vector{Index: slices.Compact(row)})
	}
	return m
}

// Lines yields the records of a gzipped file of JSON lines. It stops after an error.
func Lines[T any](path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		f, err := os.Open(path)
		if err != nil {
			yield(none, err)
			return
		}
		defer f.Close()
		z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<20))
		if err != nil {
			yield(none, fmt.Errorf("%s: %w", path, err))
			return
		}
		for d := json.NewDecoder(z); ; {
			var v T
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				yield(none, fmt.Errorf("%s: %w", path, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
