package eval

import (
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/numeric"
)

// unseenStream sets the random stream of SplitNodes apart from that of Split.
const unseenStream = 0x756e7365656e // "unseen"

// SplitNodes chooses about fraction of g's nodes to be unseen, each by a hash of the seed and its id
// alone. It returns the unseen nodes and the others, both ascending, and the links between the two:
// each once, with the unseen end as Src.
func SplitNodes(g *train.Graph, fraction float64, seed uint64) (unseen, seen []int32, links []Edge) {
	hidden := make([]bool, g.Len())
	for i, id := range g.IDs {
		r := numeric.NewRand(seed, unseenStream, numeric.HashString(id))
		if hidden[i] = r.Float64() < fraction; hidden[i] {
			unseen = append(unseen, int32(i))
		} else {
			seen = append(seen, int32(i))
		}
	}
	for i := range g.Len() {
		for _, j := range g.Neighbours.Row(i).Index {
			switch {
			case hidden[i] && !hidden[j]:
				links = append(links, Edge{int32(i), j})
			case !hidden[i] && hidden[j] && !linked(g.Neighbours, int(j), int32(i)):
				links = append(links, Edge{j, int32(i)})
			}
		}
	}
	slices.SortFunc(links, func(a, b Edge) int {
		if a.Src != b.Src {
			return int(a.Src - b.Src)
		}
		return int(a.Dst - b.Dst)
	})
	return unseen, seen, links
}

// Subgraph returns the graph of the given nodes, ascending, and the links between them.
func Subgraph(g *train.Graph, nodes []int32) *train.Graph {
	out := &train.Graph{Neighbours: entriesBetween(g.Neighbours, nodes, true)}
	for _, i := range nodes {
		out.IDs = append(out.IDs, g.IDs[i])
		out.Classes = append(out.Classes, g.Classes[i])
	}
	return out
}

// Only returns g, with all its nodes, without the links that have an end outside of the given nodes.
func Only(g *train.Graph, nodes []int32) *train.Graph {
	return &train.Graph{IDs: g.IDs, Texts: g.Texts, Classes: g.Classes, Neighbours: entriesBetween(g.Neighbours, nodes,
		false)}
}

// entriesBetween keeps the entries between the given nodes; renumber also drops the rows and columns of all
// others.
func entriesBetween(m *sparse.Matrix, nodes []int32, renumber bool) *sparse.Matrix {
	position := make([]int32, m.Rows)
	for i := range position {
		position[i] = -1
	}
	out := &sparse.Matrix{Cols: m.Cols, Start: []int64{0}}
	if renumber {
		out.Cols = len(nodes)
	}
	for k, i := range nodes {
		if position[i] = i; renumber {
			position[i] = int32(k)
		}
	}
	var row sparse.Vector
	for i := range m.Rows {
		if position[i] < 0 && renumber {
			continue
		}
		row.Index = row.Index[:0]
		if position[i] >= 0 {
			for _, j := range m.Row(i).Index {
				if position[j] >= 0 {
					row.Index = append(row.Index, position[j])
				}
			}
		}
		out.Append(row)
	}
	return out
}
