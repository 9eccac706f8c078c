// Package graphtest makes the graphs that tests of training use: a small one
// with a known structure, and the real ones of the shared data folder.
package graphtest

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
	"strings"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/internal/rng"
)

// Topics makes a graph of n nodes in the given number of topics, node i in
// topic i mod topics. Each text has a few words of its topic, in one of two
// dialects that share no word, among words of no meaning; a node is linked to
// about degree others, nine in ten of them of its own topic, whatever their
// dialect: only the links tell that the dialects speak of the same. The class
// is the topic.
func Topics(n, topics, degree int, seed uint64) *train.Graph {
	g := &train.Graph{}
	var edges [][2]int32
	for i := range n {
		r := rng.New(seed, uint64(i))
		topic := i % topics
		var text []string
		for range 4 {
			text = append(text, word(topic, i/topics%2, r.IntN(12)))
		}
		for range 8 {
			text = append(text, fmt.Sprintf("filler%d", r.IntN(60)))
		}
		g.IDs = append(g.IDs, fmt.Sprintf("node%05d", i))
		g.Texts = append(g.Texts, strings.Join(text, " "))
		g.Classes = append(g.Classes, fmt.Sprintf("topic %d", topic))
		for range degree / 2 {
			j := r.IntN(n)
			if r.IntN(10) > 0 {
				j = j - j%topics + topic
			}
			if j < n && j != i {
				edges = append(edges, [2]int32{int32(i), int32(j)})
			}
		}
	}
	g.Neighbours = Undirected(n, edges)
	return g
}

// word makes up a word whose letters tell nothing of its topic.
func word(topic, dialect, k int) string {
	r := rng.New(1, uint64(topic), uint64(dialect), uint64(k))
	letters := make([]byte, 7)
	for i := range letters {
		letters[i] = byte('a' + r.IntN(26))
	}
	return string(letters)
}

// Undirected makes the symmetric adjacency of edges, without self-loops and
// duplicates.
func Undirected(n int, edges [][2]int32) *sparse.Matrix {
	both := make([][2]int32, 0, 2*len(edges))
	for _, e := range edges {
		if e[0] != e[1] {
			both = append(both, e, [2]int32{e[1], e[0]})
		}
	}
	slices.SortFunc(both, func(a, b [2]int32) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	both = slices.Compact(both)
	m := &sparse.Matrix{Rows: n, Cols: n, Start: make([]int64, n+1)}
	for _, e := range both {
		m.Index = append(m.Index, e[1])
		m.Start[e[0]+1]++
	}
	for i := range n {
		m.Start[i+1] += m.Start[i]
	}
	return m
}

// Shared loads a graph of the shared data folder, undirected, and skips the
// test where the folder is missing. GIANTSTREAM_DATA says where it is.
func Shared(t testing.TB, name string) *train.Graph {
	t.Helper()
	dir := os.Getenv("GIANTSTREAM_DATA")
	for up := ".."; dir == "" && len(up) < 24; up = filepath.Join("..", up) {
		if d := filepath.Join(up, "shared", "data"); exists(d) {
			dir = d
		}
	}
	dir = filepath.Join(dir, name)
	if !exists(dir) {
		t.Skipf("the shared data folder has no %s here (set GIANTSTREAM_DATA to its path)", name)
	}
	g := &train.Graph{}
	each(t, filepath.Join(dir, "nodes.jsonl.gz"), func(d *json.Decoder) error {
		var n struct{ ID, Text, Label string }
		err := d.Decode(&n)
		if err == nil {
			g.IDs, g.Texts, g.Classes = append(g.IDs, n.ID), append(g.Texts, n.Text), append(g.Classes, n.Label)
		}
		return err
	})
	order := make([]int, g.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(g.IDs[a], g.IDs[b]) })
	sorted := &train.Graph{}
	position := make(map[string]int32, g.Len())
	for i, o := range order {
		position[g.IDs[o]] = int32(i)
		sorted.IDs, sorted.Texts, sorted.Classes = append(sorted.IDs, g.IDs[o]), append(sorted.Texts, g.Texts[o]), append(sorted.Classes, g.Classes[o])
	}
	var edges [][2]int32
	each(t, filepath.Join(dir, "edges.jsonl.gz"), func(d *json.Decoder) error {
		var e struct{ Src, Dst string }
		err := d.Decode(&e)
		a, known := position[e.Src]
		b, too := position[e.Dst]
		if err == nil && known && too {
			edges = append(edges, [2]int32{a, b})
		}
		return err
	})
	sorted.Neighbours = Undirected(sorted.Len(), edges)
	return sorted
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// each calls read until the end of a gzipped file of JSON lines.
func each(t testing.TB, path string, read func(*json.Decoder) error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(z)
	for {
		if err := read(d); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
}
