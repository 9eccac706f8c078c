package fit

import (
	"context"
	"math"
	"os"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/internal/race"
	"giantstream/train"
	"giantstream/train/generation/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

// without returns the graph without some nodes, and the position in it that each node of g has, -1 for none.
func without(g *train.Graph, leave func(i int) bool) (*train.Graph, []int32) {
	at := make([]int32, g.Len())
	n := int32(0)
	for i := range at {
		if leave(i) {
			at[i] = -1
			continue
		}
		at[i] = n
		n++
	}
	out := &train.Graph{Neighbours: &sparse.Matrix{Cols: int(n), Start: []int64{0}}}
	for i, position := range at {
		if position < 0 {
			continue
		}
		out.IDs, out.Texts = append(out.IDs, g.IDs[i]), append(out.Texts, g.Texts[i])
		if g.Classes != nil {
			out.Classes = append(out.Classes, g.Classes[i])
		}
		var row []int32
		for _, j := range g.Neighbours.Row(i).Index {
			if at[j] >= 0 {
				row = append(row, at[j])
			}
		}
		out.Neighbours.Append(sparse.Vector{Index: row})
	}
	return out, at
}

// generations trains an encoder on g again and again, each time without another twentieth of the nodes, and turned to
// where the encoder before has its embeddings if aligned says so. It returns the embeddings of all nodes by each.
func generations(t *testing.T, g *train.Graph, kind string, n int, aligned bool) (vectors [][]float32, dim int) {
	t.Helper()
	var before train.Encoder
	for k := range n {
		part, _ := without(g, func(i int) bool { return numeric.HashString(g.IDs[i])%20 == uint64(k) })
		x := cluster(t, fitTexts(t, part, labelDim, resources()), part, labelDim, resources())
		if aligned {
			x.OpenParent = func(context.Context) (*Parent, error) {
				if before == nil {
					return nil, nil
				}
				return &Parent{Encoder: before}, nil
			}
		}
		r := trained(t, kind, x, 1, 0)
		if r.Aligned != (aligned && k > 0) {
			t.Errorf("%s, generation %d: aligned %v", kind, k+1, r.Aligned)
		}
		before = r.Encoder
		vectors = append(vectors, encode(t, r.Encoder, g.Texts))
	}
	return vectors, before.Dim()
}

// compare asks 1,000 nodes, spread over the graph, that all generations have: all, and by degree.
func compare(g *train.Graph, before, after []float32, dim int) (eval.Overlap, []eval.Overlap) {
	var queries []int32
	for i := 0; i < g.Len(); i += max(1, g.Len()/1000) {
		if numeric.HashString(g.IDs[i])%20 > 3 {
			queries = append(queries, int32(i))
		}
	}
	return eval.Overlaps(before, after, dim, queries, eval.ByDegree(g.Neighbours), 10)
}

// Embeddings of a generation that is aligned find their neighbours among those of the generation before. Without, they
// find nothing. Within a generation nothing changes.
func TestAlignedEmbeddingsCanBeCompared(t *testing.T) {
	race.SkipComputing(t)
	g := graphtest.Topics(1000, 12, 8, 3)
	for _, kind := range []string{"hybrid", "bag", "linear"} {
		apart, dim := generations(t, g, kind, 2, false)
		together, _ := generations(t, g, kind, 2, true)
		without, _ := compare(g, apart[0], apart[1], dim)
		with, _ := compare(g, together[0], together[1], dim)
		t.Logf("%s: not aligned %+v", kind, without)
		t.Logf("%s: aligned %+v", kind, with)
		if with.NewOnOld < without.NewOnOld+0.2 || with.Cosine < without.Cosine {
			t.Errorf("%s: alignment does not help", kind)
		}
		if math.Abs(with.Kept-without.Kept) > 0.01 {
			t.Errorf("%s: alignment changes what is near within a generation", kind)
		}
	}
}

// linkedShare is the share of a node's neighbours in g that are among the ten nodes whose vectors in index are nearest
// to its vector in asking, of at most ten: a mean over the nodes q that have neighbours.
func linkedShare(g *train.Graph, index, asking []float32, dim int, q []int32) float64 {
	both := slices.Clone(index)
	var queries []int32
	for _, i := range q {
		if len(g.Neighbours.Row(int(i)).Index) > 0 {
			queries = append(queries, i)
		}
	}
	sum := 0.0
	for _, i := range queries {
		own := slices.Clone(both[int(i)*dim : int(i+1)*dim])
		copy(both[int(i)*dim:], asking[int(i)*dim:int(i+1)*dim])
		found := eval.Nearest(both, dim, []int32{i}, 10)[0]
		copy(both[int(i)*dim:], own)
		hits := 0
		near := g.Neighbours.Row(int(i)).Index
		for _, f := range found {
			if slices.Contains(near, f.Node) {
				hits++
			}
		}
		sum += float64(hits) / float64(min(10, len(near)))
	}
	return sum / float64(len(queries))
}

// TestRecallOfAlignedGenerations prints the table of docs/measurements/2026-11-23.md, "Successive generations".
func TestRecallOfAlignedGenerations(t *testing.T) {
	if os.Getenv("GIANTSTREAM_LONG") == "" {
		t.Skip("takes minutes; set GIANTSTREAM_LONG=1")
	}
	for _, name := range []string{"citeseer", "slackbuilds", "amazon-products", "debian-packages"} {
		t.Run(name, func(t *testing.T) {
			for _, aligned := range []bool{true, false} {
				recallOfGenerations(t, graphtest.Shared(t, name), aligned)
			}
		})
	}
}

// recallOfGenerations compares each two of three generations.
func recallOfGenerations(t *testing.T, g *train.Graph, aligned bool) {
	t.Helper()
	v, dim := generations(t, g, "hybrid", 3, aligned)
	var queries []int32
	for i := 0; i < g.Len(); i += max(1, g.Len()/300) {
		queries = append(queries, int32(i))
	}
	for _, pair := range [][2]int{{0, 1}, {1, 2}, {0, 2}} {
		old, now := v[pair[0]], v[pair[1]]
		o, by := compare(g, old, now, dim)
		full, mapped := linkedShare(g, now, now, dim, queries), linkedShare(g, old, now, dim, queries)
		t.Logf("| %v | %d, %d | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f, %.3f (%.3f) |", aligned, pair[0]+1, pair[1]+1,
			o.Kept, o.NewOnOld, o.OldOnNew, o.Cosine, o.Moved, full, mapped, mapped/full)
		for k, o := range by {
			t.Logf("| %v | %d, %d | degree %s, %d queries | %.3f | %.3f | %.3f | %.3f | %.3f |", aligned, pair[0]+1,
				pair[1]+1, eval.DegreeBuckets[k], o.Queries, o.Kept, o.NewOnOld, o.OldOnNew, o.Cosine, o.Moved)
		}
	}
}
