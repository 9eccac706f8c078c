package eval

import (
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// Overlap says how much of what is near a node in one space of embeddings is near it in another. All are shares of
// the k nearest others, means over the queries.
type Overlap struct {
	// Kept: near in both spaces, each asked by its own vector.
	Kept float64 `json:"neighbours_kept"`
	// NewOnOld: what a new vector finds among the old ones, of what it finds among the new ones.
	NewOnOld float64 `json:"new_query_on_old_index"`
	// OldOnNew: what an old vector finds among the new ones, of what the new one finds there.
	OldOnNew float64 `json:"old_query_on_new_index"`
	// Cosine is the mean cosine of the queries' old and new vectors.
	Cosine float64 `json:"cosine"`
	// Moved is the share of queries whose two vectors have a cosine below MovedBelow.
	Moved   float64 `json:"moved"`
	Queries int     `json:"queries"`
}

// MovedBelow is the cosine of its old and new vector below which a node has moved.
const MovedBelow = 0.9

// Overlaps compares the embeddings before and after (n×dim each) of the same nodes, with the k nearest others of the
// query nodes, by exact search: of all queries, and by the degree bucket of each node (as ByDegree has it). Rows of
// zeros are no vectors, and queries that have one are left out.
func Overlaps(before, after []float32, dim int, queries []int32, bucket []uint8, k int) (all Overlap, by []Overlap) {
	oldUnit, newUnit := normalized(before, dim), normalized(after, dim)
	each := make([]Overlap, len(queries))
	parallel.ForEach(len(queries), 1, 0, func(_, _, lo, _ int) {
		q := int(queries[lo])
		o, n := oldUnit[q*dim:(q+1)*dim], newUnit[q*dim:(q+1)*dim]
		if isZero(o) || isZero(n) {
			return
		}
		own := nearestOf(newUnit, dim, n, q, k)
		cosine := float64(numeric.Dot(o, n))
		each[lo] = Overlap{
			Kept:     shared(own, nearestOf(oldUnit, dim, o, q, k)),
			NewOnOld: shared(own, nearestOf(oldUnit, dim, n, q, k)),
			OldOnNew: shared(own, nearestOf(newUnit, dim, o, q, k)),
			Cosine:   cosine, Queries: 1,
		}
		if cosine < MovedBelow {
			each[lo].Moved = 1
		}
	})
	by = make([]Overlap, len(DegreeBuckets))
	for i, e := range each {
		all.add(e)
		by[bucket[queries[i]]].add(e)
	}
	all.mean()
	for i := range by {
		by[i].mean()
	}
	return all, by
}

func (o *Overlap) add(e Overlap) {
	o.Kept, o.NewOnOld, o.OldOnNew = o.Kept+e.Kept, o.NewOnOld+e.NewOnOld, o.OldOnNew+e.OldOnNew
	o.Cosine, o.Moved, o.Queries = o.Cosine+e.Cosine, o.Moved+e.Moved, o.Queries+e.Queries
}

func (o *Overlap) mean() {
	n := float64(max(1, o.Queries))
	o.Kept, o.NewOnOld, o.OldOnNew, o.Cosine, o.Moved = o.Kept/n, o.NewOnOld/n, o.OldOnNew/n, o.Cosine/n, o.Moved/n
}

// shared is the share of truth that is found, too.
func shared(truth, found []Neighbour) float64 {
	if len(truth) == 0 {
		return 1
	}
	in := make(map[int32]bool, len(found))
	for _, f := range found {
		in[f.Node] = true
	}
	hits := 0
	for _, n := range truth {
		if in[n.Node] {
			hits++
		}
	}
	return float64(hits) / float64(len(truth))
}
