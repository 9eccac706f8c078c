package live

import (
	"fmt"
	"slices"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/sparse"
)

// Graph keeps the PIFA sketch and the label tree of a changing graph. Nodes are
// positions below Len, as in the base tree; instance and label are two views of
// a node.
type Graph struct {
	dim       int
	weighting pifa.Weighting
	nodes     []node
	texts     vectors // projected
	sketch    *pifa.Sketch
	tree      *Tree

	scaled, scaledAfter []float32 // scratch
}

type node struct {
	// labels of the node as an instance, and the instances that it is a label
	// of; ascending, whether or not the other end exists.
	labels, instances []int32
	// degree is how many of labels exist: |y_i| of the weighting.
	degree int32
	exists bool
	// speaks: the projected text is not zero, so it adds to PIFA.
	speaks bool
}

// NewGraph returns the live graph that begins with the nodes, projected texts
// (n × dim row-major), labels (n × n, rows ascending) and tree of a generation.
// All n nodes exist. Memory: about 12·dim bytes per node and 8 per entry of labels.
func NewGraph(base *labeltree.Tree, projected []float32, dim int, labels *sparse.Matrix, w pifa.Weighting,
	opt Options) (*Graph, error) {
	n := labels.Rows
	if dim < 1 || len(projected) != n*dim || labels.Cols != n {
		return nil, fmt.Errorf("live: %d projected values and %d × %d labels are no graph of nodes with %d dimensions",
			len(projected), labels.Rows, labels.Cols, dim)
	}
	g := &Graph{dim: dim, weighting: w, texts: vectors{dim: dim}, sketch: pifa.NewSketch(0, dim),
		scaled: make([]float32, dim), scaledAfter: make([]float32, dim)}
	g.Grow(n)
	instances := labels.Transpose()
	for i := range n {
		text := projected[i*dim : (i+1)*dim]
		copy(g.texts.row(int32(i)), text)
		row := labels.Row(i).Index
		in := instances.Row(i).Index
		// Full slices: appending to one does not write into the next.
		g.nodes[i] = node{labels: row[:len(row):len(row)], instances: in[:len(in):len(in)],
			degree: int32(len(row)), exists: true, speaks: says(text)}
	}
	for i := range int32(n) {
		if !g.nodes[i].speaks {
			continue
		}
		text := g.weighted(i, g.texts.row(i), g.scaled)
		for _, l := range g.nodes[i].labels {
			g.sketch.AddEdge(int(l), text)
		}
	}
	features := make([]float32, 0, n*dim)
	for l := range n {
		features = append(features, g.sketch.Sum(l)...)
	}
	var err error
	g.tree, err = NewTree(base, features, dim, opt)
	return g, err
}

func says(text []float32) bool {
	return slices.ContainsFunc(text, func(v float32) bool { return v != 0 })
}

// Tree returns the tree that follows the graph.
func (g *Graph) Tree() *Tree { return g.tree }

// Len returns the number of nodes, those that do not exist included.
func (g *Graph) Len() int { return len(g.nodes) }

// Labels returns the labels of an instance, ascending, those that do not exist
// included. The slice must not be changed and is valid until the next change.
func (g *Graph) Labels(n int32) []int32 { return g.nodes[n].labels }

// Grow adds k nodes that do not exist yet and returns the first.
func (g *Graph) Grow(k int) int32 {
	first := len(g.nodes)
	g.nodes = append(g.nodes, make([]node, k)...)
	g.texts.grow(len(g.nodes))
	g.sketch.Grow(len(g.nodes))
	return int32(first)
}

// SetText gives a node its projected text; a node that did not exist does now.
func (g *Graph) SetText(n int32, projected []float32) {
	if !g.nodes[n].exists {
		g.create(n)
	}
	g.setText(n, projected)
}

// Delete takes a node out of the graph. Its edges stay, and count again if it
// comes back.
func (g *Graph) Delete(n int32) {
	nd := &g.nodes[n]
	if !nd.exists {
		return
	}
	g.setText(n, make([]float32, g.dim))
	g.tree.Remove(n)
	nd.exists = false // first, so that unlink does not place it again
	for _, i := range nd.instances {
		if g.nodes[i].exists {
			g.unlink(i, n)
		}
	}
	nd.degree = 0
}

// create makes a node exist, with an empty text.
func (g *Graph) create(n int32) {
	nd := &g.nodes[n]
	for _, l := range nd.labels {
		if g.nodes[l].exists {
			nd.degree++
		}
	}
	for _, i := range nd.instances {
		if g.nodes[i].exists {
			g.link(i, n)
		}
	}
	nd.exists = true // last, so that it is placed once, by all its instances
	g.follow(n)
}

// AddEdge makes node label a label of node instance, and reports whether it was
// not one before. An undirected edge is one call for each end. A node is never its own label.
func (g *Graph) AddEdge(instance, label int32) bool {
	from, to := &g.nodes[instance], &g.nodes[label]
	at, found := slices.BinarySearch(from.labels, label)
	if found || instance == label {
		return false
	}
	from.labels = slices.Insert(from.labels, at, label)
	at, _ = slices.BinarySearch(to.instances, instance)
	to.instances = slices.Insert(to.instances, at, instance)
	if from.exists && to.exists {
		g.link(instance, label)
	}
	return true
}

// RemoveEdge takes back AddEdge, and reports whether there was such an edge.
func (g *Graph) RemoveEdge(instance, label int32) bool {
	from, to := &g.nodes[instance], &g.nodes[label]
	at, found := slices.BinarySearch(from.labels, label)
	if !found {
		return false
	}
	if from.exists && to.exists {
		g.unlink(instance, label)
	}
	// Clipped copies: the slices may be part of the matrix that NewGraph was given.
	from.labels = slices.Concat(from.labels[:at], from.labels[at+1:])
	at, _ = slices.BinarySearch(to.instances, instance)
	to.instances = slices.Concat(to.instances[:at], to.instances[at+1:])
	return true
}

// weighted writes the text times the weight of instance i.
func (g *Graph) weighted(i int32, text, out []float32) []float32 {
	w := g.weighting.Of(int(g.nodes[i].degree))
	for k, v := range text {
		out[k] = w * v
	}
	return out
}

// link makes an existing label count for an existing instance.
func (g *Graph) link(i, l int32) {
	g.reweigh(i, l, 1)
	if g.nodes[i].speaks {
		g.sketch.AddEdge(int(l), g.weighted(i, g.texts.row(i), g.scaled))
		g.follow(l)
	}
}

// unlink takes back link.
func (g *Graph) unlink(i, l int32) {
	if g.nodes[i].speaks {
		// The count was raised by link, so there is an instance to remove.
		if err := g.sketch.RemoveEdge(int(l), g.weighted(i, g.texts.row(i), g.scaled)); err == nil {
			g.follow(l)
		}
	}
	g.reweigh(i, l, -1)
}

// reweigh changes the degree of instance i and with it the weight of its text
// in all its existing labels but l.
func (g *Graph) reweigh(i, l, by int32) {
	nd := &g.nodes[i]
	before := g.weighting.Of(int(nd.degree))
	nd.degree += by
	if after := g.weighting.Of(int(nd.degree)); !nd.speaks || before == after {
		return
	}
	text := g.texts.row(i)
	nd.degree -= by
	g.weighted(i, text, g.scaled)
	nd.degree += by
	g.replace(i, l, g.scaled, g.weighted(i, text, g.scaledAfter))
}

// setText replaces the text of an existing node in all its labels.
func (g *Graph) setText(n int32, projected []float32) {
	nd, text := &g.nodes[n], g.texts.row(n)
	spoke, speaks := nd.speaks, says(projected)
	g.weighted(n, text, g.scaled)
	g.weighted(n, projected, g.scaledAfter)
	copy(text, projected)
	nd.speaks = speaks
	if spoke && speaks {
		g.replace(n, -1, g.scaled, g.scaledAfter)
		return
	}
	for _, l := range nd.labels {
		switch {
		case !g.nodes[l].exists || spoke == speaks:
			continue
		case speaks:
			g.sketch.AddEdge(int(l), g.scaledAfter)
		default:
			_ = g.sketch.RemoveEdge(int(l), g.scaled) // it was counted while the node spoke
		}
		g.follow(l)
	}
}

// replace changes what instance i adds to its existing labels but one.
func (g *Graph) replace(i, except int32, before, after []float32) {
	for _, l := range g.nodes[i].labels {
		if l != except && g.nodes[l].exists {
			g.sketch.ChangeText([]int32{l}, before, after)
			g.follow(l)
		}
	}
}

// follow places a label where its features want it.
func (g *Graph) follow(l int32) {
	if !g.nodes[l].exists {
		return
	}
	if g.sketch.Instances(int(l)) == 0 {
		g.tree.Remove(l)
		return
	}
	_ = g.tree.Place(l, g.sketch.Sum(int(l))) // the dimensions agree since NewGraph
}
