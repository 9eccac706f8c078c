package main

import (
	"slices"

	"giantstream/train/generation/eval"
)

const (
	queries    = 1000
	neighbours = 10
)

// kinship compares what two generations say of the nodes of both. The nodes that ask are those that nothing has
// happened to: their texts and their links are the same.
func kinship(before, after *lived) eval.Overlap {
	x, y, dim := before.state, after.state, after.Encoder.Dim()
	if before.Encoder.Dim() != dim {
		return eval.Overlap{}
	}
	oldBoth, newBoth := slices.Clone(before.vectors), slices.Clone(after.vectors)
	var same []int32
	for i := range x.there {
		if !x.there[i] || !y.there[i] {
			clear(oldBoth[i*dim : (i+1)*dim])
			clear(newBoth[i*dim : (i+1)*dim])
			continue
		}
		if y.seq[i] <= x.cut {
			same = append(same, int32(i))
		}
	}
	o, _ := eval.Overlaps(oldBoth, newBoth, dim, spread(same), make([]uint8, len(x.there)), neighbours)
	return o
}

// spread returns some of the nodes, spread over all.
func spread(nodes []int32) (out []int32) {
	for i := 0; i < len(nodes); i += max(1, len(nodes)/queries) {
		out = append(out, nodes[i])
	}
	return out
}
