package nodemap

import (
	"math"
	"slices"
	"strings"

	"giantstream/train/generation/eval"
)

// Coloured is how many classes have a colour of their own; the rest share the last group.
const Coloured = 12

// Group is a class that has a colour.
type Group struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Nodes  int    `json:"nodes"` // of the sample
}

// Groups numbers the most frequent classes from 0; group Coloured is everything else, and is in the legend if it
// has nodes. of has the group of each node.
func Groups(nodes []Node) (legend []Group, of []int) {
	counts := map[string]int{}
	for _, n := range nodes {
		counts[n.Class]++
	}
	for name, n := range counts {
		if name != "" {
			legend = append(legend, Group{Name: name, Nodes: n})
		}
	}
	slices.SortFunc(legend, func(a, b Group) int {
		if a.Nodes != b.Nodes {
			return b.Nodes - a.Nodes
		}
		return strings.Compare(a.Name, b.Name)
	})
	legend = legend[:min(len(legend), Coloured)]
	numbers := map[string]int{}
	rest := len(nodes)
	for k := range legend {
		legend[k].Number = k
		numbers[legend[k].Name] = k
		rest -= legend[k].Nodes
	}
	if rest > 0 {
		legend = append(legend, Group{Number: Coloured, Name: "others", Nodes: rest})
	}
	for _, n := range nodes {
		number, ok := numbers[n.Class]
		if !ok {
			number = Coloured
		}
		of = append(of, number)
	}
	return legend, of
}

// Layout is a place for each node.
type Layout struct {
	At []Position
	// Preserved is the share of the nodes' nearest neighbours that are among the nearest on the map.
	Preserved float64
}

// Layouts places the nodes so that neighbours are kept together, and by PCA. It needs three nodes, and returns
// nothing for fewer.
func Layouts(nodes []Node) (together, pca Layout) {
	if len(nodes) < 3 {
		return together, pca
	}
	dim := len(nodes[0].Vector)
	vectors := make([]float32, 0, len(nodes)*dim)
	queries := make([]int32, len(nodes))
	for i, n := range nodes {
		vectors = append(vectors, n.Vector...)
		queries[i] = int32(i)
	}
	near := eval.Nearest(vectors, dim, queries, min(neighbours, len(nodes)-1))
	flat := principal(vectors, dim)
	unfolded := unfold(near, flat)
	return Layout{unfolded, preserved(near, unfolded)}, Layout{flat, preserved(near, flat)}
}

// Fit moves and scales positions into a square of a side, with a margin that stays free: the same scale both ways.
func Fit(at []Position, side, margin float64) []Position {
	lo, hi := Position{math.Inf(1), math.Inf(1)}, Position{math.Inf(-1), math.Inf(-1)}
	for _, p := range at {
		for axis, v := range p {
			lo[axis], hi[axis] = min(lo[axis], v), max(hi[axis], v)
		}
	}
	scale := (side - 2*margin) / max(hi[0]-lo[0], hi[1]-lo[1], 1e-9)
	out := make([]Position, len(at))
	for i, p := range at {
		for axis, v := range p {
			out[i][axis] = side/2 + scale*(v-(lo[axis]+hi[axis])/2)
		}
	}
	return out
}
