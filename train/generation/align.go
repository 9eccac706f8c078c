package generation

import (
	"context"
	"errors"
	"slices"

	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

// A generation is compared with the one before on at most overlapNodes nodes that both have, of which at most
// overlapQueries are asked for their overlapNeighbours nearest.
const (
	overlapNodes      = 20000
	overlapQueries    = 500
	overlapNeighbours = 10
)

// OverlapStats compares the embeddings with those that the parent generation has stored.
type OverlapStats struct {
	// Nodes are searched: those that both generations have a vector of, or a sample of them.
	Nodes int `json:"nodes"`
	eval.Overlap
	// ByDegree has the queries by their number of neighbours, as evaluations do.
	ByDegree []DegreeOverlap `json:"by_degree,omitempty"`
}

// DegreeOverlap are the figures of the queries in a bucket of degrees.
type DegreeOverlap struct {
	Degree string `json:"degree"`
	eval.Overlap
}

// SpaceOf returns the generation that began the space of the embeddings: vectors of generations of the same space can
// be compared. Documents of before there was alignment name none, and each has a space of its own.
func (d *Doc) SpaceOf() int64 {
	if d.Space == 0 {
		return d.Generation
	}
	return d.Space
}

// before returns the encoder of the generation whose space is kept, and that space; nil if it is gone or damaged: an
// encoder without it starts a space of its own.
func (b *build) before(ctx context.Context) (train.Encoder, int64, error) {
	parent, err := Load(ctx, b.Store, b.doc.KeepSpaceOf)
	var g *Generation
	if err == nil {
		g, err = Open(ctx, b.Store, parent, b.Device)
	}
	if errors.Is(err, ErrNone) || isDamage(err) {
		b.resources.Log.Warn("the embeddings start a new space: the generation before is gone or damaged",
			"before", b.doc.KeepSpaceOf, "error", err)
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return g.Encoder, parent.SpaceOf(), nil
}

// compare notes how the embeddings compare with the parent's. A parent that is gone or damaged leaves no figures.
func (b *build) compare(ctx context.Context, g *train.Graph, e embeddings) error {
	if b.doc.Parent == 0 {
		return nil
	}
	b.resources.Progress.Stage("compare with the generation before", 0)
	parent, err := Load(ctx, b.Store, b.doc.Parent)
	if err == nil {
		err = b.compareWith(ctx, parent, g, e)
	}
	if errors.Is(err, ErrNone) || isDamage(err) {
		b.resources.Log.Warn("no comparison of embeddings: the parent generation is gone or damaged", "parent",
			b.doc.Parent, "error", err)
		return nil
	}
	return err
}

func (b *build) compareWith(ctx context.Context, parent *Doc, g *train.Graph, e embeddings) error {
	dim := min(parent.StoredDim(), e.dim)
	// Nodes are sampled by a hash of their ids, so that any order of the parts gives the same figures.
	most := ^uint64(0)
	if g.Len() > overlapNodes {
		most = most / uint64(g.Len()) * overlapNodes
	}
	type pair struct {
		node int32
		old  []float32
	}
	var pairs []pair
	for _, part := range parent.Embeddings {
		for r, err := range embedding.ReadParquet(ctx, b.Store, part.Ref()) {
			if err != nil {
				return err
			}
			if r.Status == embedding.NoText || len(r.Vector) < dim || numeric.HashString(r.NodeID) > most {
				continue
			}
			if at, ok := slices.BinarySearch(g.IDs, r.NodeID); ok && e.status[at] != embedding.NoText {
				pairs = append(pairs, pair{int32(at), slices.Clone(r.Vector[:dim])})
			}
		}
	}
	if len(pairs) <= overlapNeighbours {
		return nil
	}
	slices.SortFunc(pairs, func(a, b pair) int { return int(a.node - b.node) })
	before, after := make([]float32, 0, len(pairs)*dim), make([]float32, 0, len(pairs)*dim)
	ofNode := eval.ByDegree(g.Neighbours)
	var queries []int32
	bucket := make([]uint8, 0, len(pairs))
	step := (len(pairs) + overlapQueries - 1) / overlapQueries
	for i, p := range pairs {
		before, after = append(before, p.old...), append(after, e.row(int(p.node))[:dim]...)
		bucket = append(bucket, ofNode[p.node])
		if i%step == 0 {
			queries = append(queries, int32(i))
		}
	}
	stats := &OverlapStats{Nodes: len(pairs)}
	all, by := eval.Overlaps(before, after, dim, queries, bucket, overlapNeighbours)
	stats.Overlap = all
	for k, o := range by {
		if o.Queries >= eval.MinCases {
			stats.ByDegree = append(stats.ByDegree, DegreeOverlap{eval.DegreeBuckets[k], o})
		}
	}
	b.doc.Overlap = stats
	b.resources.Log.Info("compared with the generation before", "before", parent.Generation,
		"space", b.doc.SpaceOf(), "neighbours_kept", stats.Kept, "new_query_on_old_index", stats.NewOnOld)
	return nil
}
