package report

import (
	"math"
	"slices"
	"strings"

	"giantstream/train/generation/eval"
)

const (
	// coloured is how many classes have a colour of their own; the rest share grey.
	coloured = 12
	// mapSize is the side of a map in its own units, mapMargin what stays free.
	mapSize, mapMargin = 400, 8
)

// drawing is a map of the sample.
type drawing struct {
	Title, Says string
	Preserved   float64
	Dots        []mark
}

// mark is a node on a map.
type mark struct {
	X, Y  string
	Group int
	Title string
}

// group is a class that has a colour.
type group struct {
	Number int
	Name   string
	Nodes  int
}

// draw lays the sample out, twice.
func draw(s *surveyed) ([]drawing, []group) {
	n := len(s.nodes)
	if n < 3 {
		return nil, nil
	}
	vectors := make([]float32, 0, n*s.dim)
	queries := make([]int32, n)
	for i, node := range s.nodes {
		vectors = append(vectors, node.vector...)
		queries[i] = int32(i)
	}
	near := eval.Nearest(vectors, s.dim, queries, min(neighbours, n-1))
	flat := principal(vectors, s.dim)
	legend, of := groups(s)
	maps := []drawing{
		{Title: "Neighbours kept together",
			Says: "What is near on the map is near in the embeddings; the distance between groups says nothing."},
		{Title: "PCA",
			Says: "The two directions in which the embeddings vary most; what lies on one another need not be near."},
	}
	for k, at := range [][]position{unfold(near, flat), flat} {
		maps[k].Preserved = preserved(near, at)
		maps[k].Dots = s.marks(at, of)
	}
	return maps, legend
}

// groups numbers the most frequent classes from 0; the last group is everything else.
func groups(s *surveyed) (legend []group, of map[string]int) {
	counts := map[string]int{}
	for _, n := range s.nodes {
		counts[n.class]++
	}
	for name, nodes := range counts {
		if name != "" {
			legend = append(legend, group{Name: name, Nodes: nodes})
		}
	}
	slices.SortFunc(legend, func(a, b group) int {
		if a.Nodes != b.Nodes {
			return b.Nodes - a.Nodes
		}
		return strings.Compare(a.Name, b.Name)
	})
	legend = legend[:min(len(legend), coloured)]
	of = map[string]int{}
	rest := len(s.nodes)
	for k := range legend {
		legend[k].Number = k
		of[legend[k].Name] = k
		rest -= legend[k].Nodes
	}
	if rest > 0 {
		legend = append(legend, group{Number: coloured, Name: "others", Nodes: rest})
	}
	for name := range counts {
		if _, ok := of[name]; !ok {
			of[name] = coloured
		}
	}
	return legend, of
}

// marks fits positions into a map, the same scale both ways.
func (s *surveyed) marks(at []position, of map[string]int) []mark {
	lo, hi := position{math.Inf(1), math.Inf(1)}, position{math.Inf(-1), math.Inf(-1)}
	for _, p := range at {
		for axis, v := range p {
			lo[axis], hi[axis] = min(lo[axis], v), max(hi[axis], v)
		}
	}
	scale := (mapSize - 2*mapMargin) / max(hi[0]-lo[0], hi[1]-lo[1], 1e-9)
	place := func(v float64, axis int) string {
		return coordinate(mapSize/2 + scale*(v-(lo[axis]+hi[axis])/2))
	}
	out := make([]mark, len(at))
	for i, p := range at {
		n := s.nodes[i]
		title := n.id
		if n.class != "" {
			title += " · " + n.class
		}
		if n.excerpt != "" {
			title += "\n" + n.excerpt
		}
		out[i] = mark{place(p[0], 0), place(p[1], 1), of[n.class], title}
	}
	return out
}
