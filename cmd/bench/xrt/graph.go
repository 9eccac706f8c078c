package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train"
)

// loadGraph reads nodes.jsonl.gz (id, text, label) and edges.jsonl.gz (src,
// dst) of a folder as an undirected graph.
func loadGraph(folder string) (*train.Graph, error) {
	type node struct{ ID, Text, Label string }
	type edge struct{ Src, Dst string }
	nodes, err := readLines[node](filepath.Join(folder, "nodes.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	edges, err := readLines[edge](filepath.Join(folder, "edges.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.ID, b.ID) })
	g := &train.Graph{}
	position := make(map[string]int32, len(nodes))
	for i, n := range nodes {
		position[n.ID] = int32(i)
		g.IDs, g.Texts, g.Classes = append(g.IDs, n.ID), append(g.Texts, n.Text), append(g.Classes, n.Label)
	}
	rows := make([][]int32, len(nodes))
	for _, e := range edges {
		a, known := position[e.Src]
		b, too := position[e.Dst]
		if known && too && a != b {
			rows[a], rows[b] = append(rows[a], b), append(rows[b], a)
		}
	}
	g.Neighbours = &sparse.Matrix{Cols: len(nodes), Start: []int64{0}}
	for _, row := range rows {
		slices.Sort(row)
		g.Neighbours.Append(sparse.Vector{Index: slices.Compact(row)})
	}
	return g, nil
}

// readLines reads a gzipped file of JSON lines.
func readLines[T any](path string) (list []T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := json.NewDecoder(z)
	for {
		var v T
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, v)
	}
}
