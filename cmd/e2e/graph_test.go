package e2e_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nodeEvent and edgeEvent are lines of the input files. At is the event time, in seconds since
// 1970.
type nodeEvent struct {
	ID      string `json:"id"`
	Text    string `json:"text,omitempty"`
	Label   string `json:"label,omitempty"`
	At      int64  `json:"at"`
	Deleted bool   `json:"deleted,omitempty"`
}

type edgeEvent struct {
	Src     string `json:"src"`
	Dst     string `json:"dst"`
	At      int64  `json:"at"`
	Deleted bool   `json:"deleted,omitempty"`
}

// history is the sequence of events of a graph, in the order in which they are sent.
type history struct {
	nodes []nodeEvent
	edges []edgeEvent
}

// write makes the history's files in dir, the nodes in two, and returns the flags that send them.
func (h *history) write(t *testing.T, dir string) []string {
	t.Helper()
	half := len(h.nodes) / 2
	writeLines(t, filepath.Join(dir, "nodes-1.jsonl.gz"), h.nodes[:half])
	writeLines(t, filepath.Join(dir, "nodes-2.jsonl.gz"), h.nodes[half:])
	writeLines(t, filepath.Join(dir, "edges.jsonl.gz"), h.edges)
	return []string{"--nodes", filepath.Join(dir, "nodes-*.jsonl.gz"), "--edges", filepath.Join(dir, "edges.jsonl.gz")}
}

func writeLines[T any](t *testing.T, path string, events []T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var out io.WriteCloser = f
	if filepath.Ext(path) == ".gz" {
		out = gzip.NewWriter(f)
	}
	enc := json.NewEncoder(out)
	for _, e := range events {
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if out != f {
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// author invents the histories of one graph, a contextual stochastic block model: a node's text has
// words of its topic, and most of its links stay within the topic.
type author struct {
	*rand.Rand
	size int
}

const (
	topics = 8
	// epoch is when the histories begin, in seconds since 1970.
	epoch = 1_700_000_000
)

func newAuthor(seed uint64, size int) *author {
	return &author{rand.New(rand.NewPCG(seed, 1)), size}
}

func (a *author) id(i int) string { return fmt.Sprintf("n%04d", i) }

func (a *author) text(i int) string {
	words := make([]string, 8+a.IntN(8))
	for k := range words {
		if a.IntN(2) == 0 {
			words[k] = fmt.Sprintf("word%d", a.IntN(300))
		} else {
			words[k] = fmt.Sprintf("topic%dword%d", i%topics, a.IntN(40))
		}
	}
	return strings.Join(words, " ")
}

func (a *author) put(i int, at int64) nodeEvent {
	return nodeEvent{ID: a.id(i), Text: a.text(i), Label: fmt.Sprint("topic", i%topics), At: at}
}

func (a *author) edge(i int, at int64) edgeEvent {
	j := a.IntN(a.size/topics)*topics + i%topics
	if a.IntN(5) == 0 {
		j = a.IntN(a.size)
	}
	dst := a.id(j)
	switch {
	case i == j:
		dst = a.id((i + topics) % a.size)
	case a.IntN(50) == 0:
		dst = fmt.Sprintf("unknown%02d", a.IntN(20))
	}
	return edgeEvent{Src: a.id(i), Dst: dst, At: at}
}

// beginning is a whole graph: several versions of many nodes, some deleted, some deleted and back
// again, edges taken back, everything out of order and some of it twice.
func (a *author) beginning() history {
	var h history
	for i := range a.size {
		at := epoch + a.Int64N(1000)
		h.nodes = append(h.nodes, a.put(i, at))
		for range a.IntN(4) {
			at += a.Int64N(100) // 0: the later line wins
			h.nodes = append(h.nodes, a.put(i, at))
		}
		fate := a.IntN(20)
		if fate < 2 {
			h.nodes = append(h.nodes, nodeEvent{ID: a.id(i), At: at + 10, Deleted: true})
		}
		if fate == 0 {
			h.nodes = append(h.nodes, a.put(i, at+20))
		}
		for range 5 {
			e := a.edge(i, epoch+a.Int64N(1000))
			h.edges = append(h.edges, e)
			if a.IntN(10) == 0 {
				e.At, e.Deleted = e.At+a.Int64N(100), true
				h.edges = append(h.edges, e)
			}
		}
	}
	return a.disorder(h)
}

// later changes a few nodes and links, deletes some, adds new ones, and repeats old news, which
// changes nothing.
func (a *author) later() history {
	const now = epoch + 10_000
	var h history
	for i := range a.size {
		switch a.IntN(25) {
		case 0, 1:
			h.nodes = append(h.nodes, a.put(i, now+a.Int64N(1000)))
		case 2:
			h.nodes = append(h.nodes, nodeEvent{ID: a.id(i), At: now + a.Int64N(1000), Deleted: true})
		case 3:
			h.nodes = append(h.nodes, a.put(i, epoch-a.Int64N(1000)))
		case 4:
			h.edges = append(h.edges, a.edge(i, now+a.Int64N(1000)))
		case 5:
			e := a.edge(i, now+a.Int64N(1000))
			e.Deleted = true
			h.edges = append(h.edges, e)
		}
	}
	for i := range a.size / 25 {
		i += a.size
		h.nodes = append(h.nodes, a.put(i, now))
		for range 3 {
			h.edges = append(h.edges, a.edge(i, now))
		}
	}
	return a.disorder(h)
}

// disorder repeats some events and shuffles all.
func (a *author) disorder(h history) history {
	for range len(h.nodes) / 20 {
		h.nodes = append(h.nodes, h.nodes[a.IntN(len(h.nodes))])
	}
	for range len(h.edges) / 20 {
		h.edges = append(h.edges, h.edges[a.IntN(len(h.edges))])
	}
	a.Shuffle(len(h.nodes), func(i, j int) { h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i] })
	a.Shuffle(len(h.edges), func(i, j int) { h.edges[i], h.edges[j] = h.edges[j], h.edges[i] })
	return h
}

// node is what the graph says of one live node.
type node struct {
	text, class string
	labels      []string
}

// graphOf works out the graph that histories leave, in the plainest way: of each node and of each
// edge the latest statement counts, and of statements of the same time the last one sent.
func graphOf(histories ...history) map[string]node {
	nodes := map[string]nodeEvent{}
	edges := map[[2]string]edgeEvent{}
	for _, h := range histories {
		for _, e := range h.nodes {
			if old, ok := nodes[e.ID]; !ok || e.At >= old.At {
				nodes[e.ID] = e
			}
		}
		for _, e := range h.edges {
			key := [2]string{e.Src, e.Dst}
			if old, ok := edges[key]; !ok || e.At >= old.At {
				edges[key] = e
			}
		}
	}
	graph := map[string]node{}
	for id, e := range nodes {
		if !e.Deleted {
			graph[id] = node{text: e.Text, class: e.Label}
		}
	}
	link := func(a, b string) {
		if n, ok := graph[a]; ok {
			n.labels = append(n.labels, b)
			graph[a] = n
		}
	}
	for key, e := range edges {
		if !e.Deleted {
			link(key[0], key[1])
			link(key[1], key[0])
		}
	}
	for id, n := range graph {
		slices.Sort(n.labels)
		n.labels = slices.Compact(n.labels)
		graph[id] = n
	}
	return graph
}
