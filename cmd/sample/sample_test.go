package sample_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"giantstream/cmd/sample"
)

var update = flag.Bool("update", false, "rewrite testdata/counts.golden")

type node struct{ ID, Text, Label string }

type edge struct{ Src, Dst, Kind string }

func read[T any](t *testing.T, name string) []T {
	t.Helper()
	f, err := sample.Files().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var lines []T
	dec := json.NewDecoder(bufio.NewReader(zip))
	dec.DisallowUnknownFields()
	for dec.More() {
		var line T
		if err := dec.Decode(&line); err != nil {
			t.Fatalf("%s, line %d: %v", name, len(lines)+1, err)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestGraphIsWhole(t *testing.T) {
	nodes, edges := read[node](t, sample.NodesFile), read[edge](t, sample.EdgesFile)
	ids := map[string]bool{}
	for _, n := range nodes {
		if ids[n.ID] {
			t.Errorf("node %s twice", n.ID)
		}
		if n.ID == "" || n.Text == "" || n.Label == "" {
			t.Errorf("node with an empty field: %+v", n)
		}
		ids[n.ID] = true
	}
	seen := map[[2]string]bool{}
	for _, e := range edges {
		if !ids[e.Src] || !ids[e.Dst] {
			t.Errorf("edge %s → %s has an end that is no node", e.Src, e.Dst)
		}
		if e.Src == e.Dst {
			t.Errorf("self-loop at %s", e.Src)
		}
		if seen[[2]string{e.Src, e.Dst}] {
			t.Errorf("edge %s → %s twice", e.Src, e.Dst)
		}
		seen[[2]string{e.Src, e.Dst}] = true
	}
}

func TestKnownDeclarationsAreThere(t *testing.T) {
	texts := map[string]string{}
	for _, n := range read[node](t, sample.NodesFile) {
		texts[n.ID] = n.Text
	}
	for id, want := range map[string]string{
		"net/http":           "Package http provides HTTP client and server implementations.",
		"net/http.Client.Do": "func (c *Client) Do(req *Request) (*Response, error)",
		"io.Reader":          "Reader is the interface that wraps the basic Read method.",
		"io.EOF":             "EOF is the error returned by Read when no more input is available.",
	} {
		if !strings.Contains(texts[id], want) {
			t.Errorf("text of %s does not contain %q:\n%s", id, want, texts[id])
		}
	}
}

// The counts stand in the documentation; the golden file keeps them true.
func TestCounts(t *testing.T) {
	nodes, edges := read[node](t, sample.NodesFile), read[edge](t, sample.EdgesFile)
	labels, kinds := map[string]int{}, map[string]int{}
	for _, n := range nodes {
		labels[n.Label]++
	}
	degree, pairs := map[string]int{}, map[[2]string]bool{}
	for _, e := range edges {
		kinds[e.Kind]++
		pair := [2]string{min(e.Src, e.Dst), max(e.Src, e.Dst)}
		if !pairs[pair] {
			pairs[pair] = true
			degree[e.Src]++
			degree[e.Dst]++
		}
	}
	var got strings.Builder
	fmt.Fprintf(&got, "nodes %d\nedges %d\nundirected pairs %d\n", len(nodes), len(edges), len(pairs))
	fmt.Fprintf(&got, "isolated nodes %d\nlargest degree %d\n", len(nodes)-len(degree),
		slices.Max(slices.Collect(maps.Values(degree))))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&got, "kind %s %d\n", kind, kinds[kind])
	}
	fmt.Fprintf(&got, "labels %d\n", len(labels))
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&got, "label %s %d\n", label, labels[label])
	}

	golden := filepath.Join("testdata", "counts.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("counts changed; run go test -update if that is meant\n got:\n%s\nwant:\n%s", got.String(), want)
	}
}
