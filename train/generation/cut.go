package generation

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"

	"giantstream/featurize/sparse"
	"giantstream/sink/rows"
	"giantstream/train"
)

// Row is the newest committed row of a node at the cut, and where it stands.
type Row struct {
	rows.Row
	Shard int
	Seq   int64 // manifest that committed it
}

// Source is the cut of the graph that a generation is fitted on.
type Source interface {
	// Cut names it: the newest manifest included, per shard.
	Cut() map[int]int64
	// Rows yields the newest row of every node of the cut, deleted ones
	// included, each node once, in any order that is the same at every call.
	Rows(ctx context.Context) iter.Seq2[Row, error]
	// Hash is the graph's hash; valid after Rows has been run to its end.
	Hash() string
}

// corpus is the cut in memory: the graph in ascending id order and what the
// embedding records need to know of each node.
type corpus struct {
	graph *train.Graph
	meta  []nodeMeta
	stats GraphStats
}

type nodeMeta struct {
	shard     int32
	seq       int64
	eventTime int64
}

// loadCorpus reads the cut. Memory: the texts, and 4 bytes per adjacency.
func loadCorpus(ctx context.Context, src Source, maxDegree int, p train.Progress) (*corpus, error) {
	type node struct {
		id, text, class string
		labels          []string
		meta            nodeMeta
	}
	var nodes []node
	c := &corpus{}
	intern := map[string]string{} // one copy of every id, however many rows name it
	for r, err := range src.Rows(ctx) {
		if err != nil {
			return nil, fmt.Errorf("read the cut: %w", err)
		}
		p.Add(1)
		if r.Deleted {
			c.stats.Deleted++
			continue
		}
		// Rows share memory with their neighbours in the file; what is kept is copied.
		for i, l := range r.Labels {
			if s, ok := intern[l]; ok {
				r.Labels[i] = s
			} else {
				l = strings.Clone(l)
				intern[l], r.Labels[i] = l, l
			}
		}
		nodes = append(nodes, node{strings.Clone(r.NodeID), strings.Clone(r.Text), strings.Clone(r.Class), slices.Clone(r.Labels),
			nodeMeta{int32(r.Shard), r.Seq, r.EventTime}})
	}
	clear(intern)
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].id < nodes[j].id })

	n := len(nodes)
	g := &train.Graph{IDs: make([]string, n), Texts: make([]string, n), Classes: make([]string, n),
		Neighbours: &sparse.Matrix{Cols: n, Start: make([]int64, 1, n+1)}}
	c.meta = make([]nodeMeta, n)
	position := make(map[string]int32, n)
	for i, nd := range nodes {
		if i > 0 && nodes[i-1].id == nd.id {
			return nil, fmt.Errorf("node %q stands in shards %d and %d: the nodes topic is not keyed by id",
				nd.id, nodes[i-1].meta.shard, nd.meta.shard)
		}
		g.IDs[i], g.Texts[i], g.Classes[i], c.meta[i] = nd.id, nd.text, nd.class, nd.meta
		position[nd.id] = int32(i)
	}
	classes := map[string]struct{}{}
	for i := range nodes {
		var row sparse.Vector
		for _, l := range nodes[i].labels { // ascending by id, hence by position
			if j, ok := position[l]; ok && int(j) != i {
				row.Index = append(row.Index, j)
			} else {
				c.stats.Dangling++
			}
		}
		nodes[i].labels = nil
		g.Neighbours.Append(row)
		d := len(row.Index)
		c.stats.Links += d
		c.stats.MaxDegree = max(c.stats.MaxDegree, d)
		if d == 0 {
			c.stats.Isolated++
		}
		if d > maxDegree {
			c.stats.Hubs++
		}
		if g.Classes[i] != "" {
			classes[g.Classes[i]] = struct{}{}
		}
	}
	c.stats.Nodes, c.stats.Classes = n, len(classes)
	c.graph = g
	return c, nil
}

// byShard yields the shards that have nodes, in order, and their nodes,
// ascending.
func (c *corpus) byShard() iter.Seq2[int, []int32] {
	shards := map[int32][]int32{}
	for i, m := range c.meta {
		shards[m.shard] = append(shards[m.shard], int32(i))
	}
	return func(yield func(int, []int32) bool) {
		for _, shard := range slices.Sorted(maps.Keys(shards)) {
			if !yield(int(shard), shards[shard]) {
				return
			}
		}
	}
}
