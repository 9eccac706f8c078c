package oracle

import (
	"cmp"
	"slices"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

// NodeVectors are the vectors that an input states of a node.
type NodeVectors struct {
	ID      string
	Input   uint8
	Vectors []mutation.Vector
}

type vectorsID struct {
	id    string
	input uint8
}

// sayVectors adds the vectors that a mutation states.
func (g *Graph) sayVectors(m *mutation.Mutation) {
	k := vectorsID{m.ID, m.Version.Rank}
	if old, ok := g.vectors[k]; !ok || m.Version.Compare(old.Version) > 0 {
		g.vectors[k] = mutation.Mutation{Version: m.Version, Vectors: m.Vectors}
	}
}

// Vectors returns the vectors of every node and input that have any, by id and then by input.
func (g *Graph) Vectors() (out []NodeVectors) {
	for k, m := range g.vectors {
		if len(m.Vectors) > 0 {
			out = append(out, NodeVectors{k.id, k.input, m.Vectors})
		}
	}
	slices.SortFunc(out, func(a, b NodeVectors) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Input, b.Input))
	})
	return out
}

// VectorsOf returns what a row of vectors says. When that was stated does not count.
func VectorsOf(r *rows.Vectors) NodeVectors {
	v := NodeVectors{ID: r.NodeID, Input: uint8(r.Input)}
	for i, name := range r.Names {
		v.Vectors = append(v.Vectors, mutation.Vector{Name: name, Precision: mutation.Precision(r.Bits[i] / 8),
			Data: string(r.Values[i])})
	}
	return v
}

// Equal reports whether the same vectors are stated.
func (v NodeVectors) Equal(w NodeVectors) bool {
	return v.ID == w.ID && v.Input == w.Input && slices.Equal(v.Vectors, w.Vectors)
}
