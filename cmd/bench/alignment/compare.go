package main

import (
	"fmt"
	"slices"

	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

const (
	queries    = 1000
	neighbours = 10
)

// compare asks vectors of generation now on the index of generation old (places among the states), by three measures:
// nodes of both generations among each other, as generation.json has it; nodes that are new, or whose text is, among
// the nodes of both; and any node of now, whose ten nearest may be new, among all that old has published.
func (b *bench) compare(mode string, old, now int, before, after *built) {
	x, y := &b.states[old], &b.states[now]
	dim := after.Doc.Encoder.Dim
	if before.Doc.Encoder.Dim != dim {
		fmt.Printf("%s %d, %d: other dimensions\n", mode, old+1, now+1)
		return
	}
	oldBoth, newBoth := slices.Clone(before.vectors), slices.Clone(after.vectors)
	var both, fresh, all []int32
	bucket := make([]uint8, len(x.there))
	for i := range x.there {
		bucket[i] = eval.Bucket(len(y.linked[i]))
		if !x.there[i] || !y.there[i] {
			clear(oldBoth[i*dim : (i+1)*dim])
			clear(newBoth[i*dim : (i+1)*dim])
		}
		if !y.there[i] {
			continue
		}
		all = append(all, int32(i))
		if x.there[i] {
			both = append(both, int32(i))
		}
		if !x.there[i] || x.texts[i] != y.texts[i] {
			fresh = append(fresh, int32(i))
		}
	}
	o, by := eval.Overlaps(oldBoth, newBoth, dim, spread(both), bucket, neighbours)
	of := recall(newBoth, oldBoth, after.vectors, dim, spread(fresh))
	whole := recall(after.vectors, before.vectors, after.vectors, dim, spread(all))
	fmt.Printf("| %s | %d, %d | %.3f | %.3f | %.3f | %.3f | %.4f | %.3f | %.3f | %.3f |\n", mode, old+1, now+1, o.Kept,
		o.NewOnOld, o.OldOnNew, float64(len(both))/float64(len(all)), o.Cosine, o.Moved, of, whole)
	if now-old > 1 {
		b.compareTurned(mode, old, now, oldBoth, newBoth, both, dim)
	}
	for k, d := range by {
		fmt.Printf("|   %s links | %d asked | %.3f | %.3f | %.3f | | %.4f | %.3f | | |\n",
			eval.DegreeBuckets[k], d.Queries, d.Kept, d.NewOnOld, d.OldOnNew, d.Cosine, d.Moved)
	}
}

// compareTurned says what new vectors would find that were turned to the older generation itself, and not by way of the
// ones between.
func (b *bench) compareTurned(mode string, old, now int, before, after []float32, both []int32, dim int) {
	rotation, err := numeric.Procrustes(after, before, dim)
	if err != nil {
		fmt.Printf("%s %d, %d: %v\n", mode, old+1, now+1, err)
		return
	}
	turned := slices.Clone(after)
	numeric.Rotate(turned, rotation, dim)
	o, _ := eval.Overlaps(before, turned, dim, spread(both), make([]uint8, len(b.Graph.IDs)), neighbours)
	fmt.Printf("|   turned to %d itself | | | %.3f | %.3f | | %.4f | %.3f | | |\n", old+1, o.NewOnOld, o.OldOnNew,
		o.Cosine, o.Moved)
}

// spread returns some of the nodes, spread over all.
func spread(nodes []int32) (out []int32) {
	for i := 0; i < len(nodes); i += max(1, len(nodes)/queries) {
		out = append(out, nodes[i])
	}
	return out
}

// recall is the share of the nodes that are nearest in truth which asking finds in index.
func recall(truth, index, asking []float32, dim int, nodes []int32) float64 {
	want := eval.NearestTo(truth, asking, dim, nodes, neighbours)
	got := eval.NearestTo(index, asking, dim, nodes, neighbours)
	hits, all := 0, 0
	for q := range nodes {
		all += len(want[q])
		for _, w := range want[q] {
			if slices.ContainsFunc(got[q], func(g eval.Neighbour) bool { return g.Node == w.Node }) {
				hits++
			}
		}
	}
	return float64(hits) / float64(max(1, all))
}
