package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"giantstream/cmd/internal/nodemap"
	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/train/generation"
)

const (
	// chosenShown is how many similar nodes the page shows of a node that was asked for, linksShown how many links.
	chosenShown = 20
	linksShown  = 50
)

// chosen is a node that was asked for.
type chosen struct {
	*example
	// Links are the first linksShown of its Degree neighbours in the graph at the cut, hidden ones included.
	Links  []string
	Degree int
	// Path are its clusters, coarse to fine; empty where the tree does not have the node.
	Path []generation.Cluster
}

// choose returns the nodes that were asked for, each once, in the order of the question.
func choose(ids []string) (out []*chosen) {
	for i, id := range ids {
		if !slices.Contains(ids[:i], id) {
			out = append(out, &chosen{example: &example{ID: id, shown: chosenShown}})
		}
	}
	return out
}

// note takes what a row of the cut says of a node that was asked for.
func (c *chosen) note(r *generation.Row) {
	e := c.example
	e.Class, e.Excerpt, e.text = strings.Clone(r.Class), excerpt(r.Text), strings.Clone(r.Text)
	e.links = map[string]bool{}
	for _, l := range r.Labels {
		l = strings.Clone(l)
		e.links[l] = true
		if len(c.Links) < linksShown {
			c.Links = append(c.Links, l)
		}
	}
	c.Degree = len(r.Labels)
}

// embed finds the embeddings of the nodes that were asked for. A node without text has none.
func embed(ctx context.Context, store sink.Store, doc *generation.Doc, nodes []*chosen,
	progress ambient.Progress) error {
	if len(nodes) == 0 {
		return nil
	}
	for _, c := range nodes {
		if c.links == nil {
			return fmt.Errorf("node %q is not in the cut of generation %d; ids are compared byte by byte", c.ID,
				doc.Generation)
		}
	}
	return nodemap.EachEmbedding(ctx, store, doc, progress, "find the nodes", func(r *embedding.Record) {
		for _, c := range nodes {
			if c.ID == r.NodeID {
				c.phi = slices.Clone(r.Vector)
			}
		}
	})
}

// place finds the clusters of the nodes in the outline of the whole tree.
func place(nodes []*chosen, outline []generation.Cluster, open *generation.Generation) {
	type key struct {
		level   int
		cluster int32
	}
	clusters := make(map[key]generation.Cluster, len(outline))
	for _, c := range outline {
		clusters[key{c.Level, c.Cluster}] = c
	}
	for _, n := range nodes {
		label, ok := open.Label(n.ID)
		if !ok {
			continue
		}
		for level := range open.Tree.Levels() {
			if c, ok := clusters[key{level, open.Tree.Cluster(level, int(label))}]; ok {
				n.Path = append(n.Path, c)
			}
		}
	}
}
