package generation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"giantstream/featurize/sparse"
	"giantstream/internal/ambient"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation/fit"
)

// Row is the newest committed row of a node at the cut, and its place in the commit log.
type Row struct {
	rows.Row
	Shard int
	Seq   int64 // manifest that committed it
	// TimeOnly: the row says nothing but that the node's event time is at least this.
	TimeOnly bool
}

// Source is the cut of the graph that a generation is fitted on.
type Source interface {
	// Cut names it: the newest manifest included, per shard.
	Cut() map[int]int64
	// Rows yields the newest row of every node of the cut, deleted ones included, each node once.
	// The order is the same at every call.
	Rows(ctx context.Context) iter.Seq2[Row, error]
	// Hash is the graph's hash; valid after Rows has yielded its last row.
	Hash() string
}

// Corpus is the cut as a build sees it: the graph in ascending id order, its texts aside
// (Graph.Texts is nil), and what the embedding records need to know of each node. Memory: 8 bytes
// per adjacency, the ids, some 100 bytes per node, and as much of the texts as Resources allow.
type Corpus struct {
	Graph *train.Graph
	Texts *fit.Texts
	Stats GraphStats
	meta  []nodeMeta
}

type nodeMeta struct {
	shard     int32
	seq       int64
	eventTime int64
}

// ReadCut reads the source. Nodes with more than maxDegree neighbours are counted as hubs. Close
// the corpus after use.
func ReadCut(ctx context.Context, src Source, maxDegree int, r fit.Resources) (_ *Corpus, err error) {
	r.Progress.Stage("read the cut", 0)
	c := &Corpus{Texts: fit.NewTexts(r)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	read, err := c.read(ctx, src, r.Progress)
	if err != nil {
		return nil, fmt.Errorf("read the cut: %w", err)
	}
	return c, c.arrange(read, maxDegree)
}

// arrivals are the nodes in the order of the source.
type arrivals struct {
	names   names
	nodes   []int32 // name of each node
	classes []string
	meta    []nodeMeta
	labels  sparse.Matrix // row i: the names of node i's labels, in their order
}

// names numbers ids, one copy of each however many rows name it.
type names struct {
	number map[string]int32
	all    []string
}

func (n *names) numberOf(id string) int32 {
	k, ok := n.number[id]
	if !ok {
		// Rows share memory with their neighbours in the file, so that a kept id is copied.
		id = strings.Clone(id)
		k = int32(len(n.all))
		n.number[id], n.all = k, append(n.all, id)
	}
	return k
}

func (c *Corpus) read(ctx context.Context, src Source, p ambient.Progress) (*arrivals, error) {
	a := &arrivals{names: names{number: map[string]int32{}}}
	classes := map[string]string{}
	var labels []int32
	for r, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		p.Add(1)
		if r.Deleted {
			c.Stats.Deleted++
			continue
		}
		if _, ok := classes[r.Class]; !ok {
			class := strings.Clone(r.Class)
			classes[class] = class
		}
		labels = labels[:0]
		for _, l := range r.Labels {
			labels = append(labels, a.names.numberOf(l))
		}
		a.nodes = append(a.nodes, a.names.numberOf(r.NodeID))
		a.classes = append(a.classes, classes[r.Class])
		a.meta = append(a.meta, nodeMeta{int32(r.Shard), r.Seq, r.EventTime})
		a.labels.Append(sparse.Vector{Index: labels})
		if err := c.Texts.Append(r.Text); err != nil {
			return nil, err
		}
	}
	delete(classes, "")
	c.Stats.Nodes, c.Stats.Classes = len(a.nodes), len(classes)
	return a, nil
}

// arrange puts the nodes in ascending order of id.
func (c *Corpus) arrange(a *arrivals, maxDegree int) error {
	n := len(a.nodes)
	a.names.number = nil
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	id := func(arrival int32) string { return a.names.all[a.nodes[arrival]] }
	slices.SortFunc(order, func(i, j int32) int { return strings.Compare(id(i), id(j)) })

	g := &train.Graph{IDs: make([]string, n), Classes: make([]string, n),
		Neighbours: &sparse.Matrix{Cols: n, Start: make([]int64, 1, n+1), Index: make([]int32, 0, len(a.labels.Index))}}
	c.Graph, c.meta = g, make([]nodeMeta, n)
	if err := c.Texts.Arrange(order); err != nil {
		return err
	}
	position := make([]int32, len(a.names.all)) // by name, -1 for ids that are no nodes
	for k := range position {
		position[k] = -1
	}
	for i, from := range order {
		g.IDs[i], g.Classes[i], c.meta[i] = id(from), a.classes[from], a.meta[from]
		if i > 0 && g.IDs[i-1] == g.IDs[i] {
			return fmt.Errorf("node %q stands in shards %d and %d: the nodes topic is not keyed by id",
				g.IDs[i], c.meta[i-1].shard, c.meta[i].shard)
		}
		position[a.nodes[from]] = int32(i)
	}
	var row sparse.Vector
	for i, from := range order {
		row.Index = row.Index[:0]
		for _, l := range a.labels.Row(int(from)).Index { // ascending by id, hence by position
			if j := position[l]; j >= 0 && int(j) != i {
				row.Index = append(row.Index, j)
			} else {
				c.Stats.Dangling++
			}
		}
		g.Neighbours.Append(row)
		d := len(row.Index)
		c.Stats.Links += d
		c.Stats.MaxDegree = max(c.Stats.MaxDegree, d)
		if d == 0 {
			c.Stats.Isolated++
		}
		if d > maxDegree {
			c.Stats.Hubs++
		}
	}
	return nil
}

// Close gives back what the texts hold outside of memory.
func (c *Corpus) Close() error { return c.Texts.Close() }

// Times returns the nodes' event times.
func (c *Corpus) Times() []time.Time {
	times := make([]time.Time, len(c.meta))
	for i, m := range c.meta {
		times[i] = time.UnixMicro(m.eventTime)
	}
	return times
}
