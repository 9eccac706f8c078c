package generation

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
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
// be compared. Documents written before alignment existed name none, and each has its own space.
func (d *Doc) SpaceOf() int64 {
	if d.Space == 0 {
		return d.Generation
	}
	return d.Space
}

// SpaceBefore returns SpaceOf as records have it: 0 for a space that the generation has begun itself.
func (d *Doc) SpaceBefore() int64 {
	if d.Space == d.Generation {
		return 0
	}
	return d.Space
}

// OpenParent opens what a build takes of the generation whose space it is to keep, and returns that space; nil if the
// generation is gone or damaged. Close the parent after use.
func OpenParent(ctx context.Context, store sink.Store, doc *Doc, r fit.Resources) (*fit.Parent, int64, error) {
	before, err := Load(ctx, store, doc.KeepSpaceOf)
	var p *fit.Parent
	if err == nil {
		p, err = openParent(ctx, store, before, r)
	}
	if errors.Is(err, ErrNone) || IsDamage(err) {
		r.Log.Warn("the embeddings start a new space: the generation before is gone or damaged",
			"before", doc.KeepSpaceOf, "error", err)
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return p, before.SpaceOf(), nil
}

func openParent(ctx context.Context, store sink.Store, doc *Doc, r fit.Resources) (p *fit.Parent, err error) {
	p = &fit.Parent{}
	if p.Vectorizer, err = loadOf(ctx, store, doc, VectorizerName, tfidf.Read); err == nil {
		p.Projection, err = loadOf(ctx, store, doc, ProjectionName, projection.Read)
	}
	if err == nil {
		p.Encoder, err = openEncoder(ctx, store, doc, p.Vectorizer, p.Projection, r.Device)
	}
	return p, damaged(doc.Generation, err)
}

// Compare compares the embeddings that generation b has stored with those of generation a, on a sample of the nodes
// that both have. It returns nil for too few. The figures are not split by degree: a generation stores no graph.
func Compare(ctx context.Context, store sink.Store, a, b *Doc) (*OverlapStats, error) {
	stats, err := compareStored(ctx, store, a, b, func(string) uint8 { return 0 })
	if stats != nil {
		stats.ByDegree = nil
	}
	return stats, err
}

// CompareParent compares the embeddings that the parts of doc have stored with the parent's. degree returns the number
// of a node's neighbours. It returns nil for too few nodes, and for a parent that is gone or damaged.
func CompareParent(ctx context.Context, store sink.Store, doc *Doc, degree func(id string) int, log *slog.Logger) (
	*OverlapStats, error) {
	parent, err := Load(ctx, store, doc.Parent)
	var stats *OverlapStats
	if err == nil {
		stats, err = compareStored(ctx, store, parent, doc, func(id string) uint8 { return eval.Bucket(degree(id)) })
	}
	if errors.Is(err, ErrNone) || IsDamage(err) {
		log.Warn("no comparison of embeddings: the parent generation is gone or damaged", "parent", doc.Parent,
			"error", err)
		return nil, nil
	}
	return stats, err
}

func compareStored(ctx context.Context, store sink.Store, a, b *Doc, bucket func(id string) uint8) (*OverlapStats,
	error) {
	dim, nodes := min(a.StoredDim(), b.StoredDim()), max(a.Graph.Nodes, b.Graph.Nodes)
	before := map[string][]float32{}
	for id, r := range sampled(ctx, store, a, dim, nodes) {
		if r.err != nil {
			return nil, r.err
		}
		before[strings.Clone(id)] = slices.Clone(r.vector)
	}
	var pairs []pair
	for id, r := range sampled(ctx, store, b, dim, nodes) {
		if r.err != nil {
			return nil, r.err
		}
		if old, ok := before[id]; ok {
			pairs = append(pairs, pair{strings.Clone(id), bucket(id), old, slices.Clone(r.vector)})
		}
	}
	return overlap(pairs, dim), nil
}

// stored is the beginning of a stored vector, or why it cannot be read.
type stored struct {
	vector []float32
	err    error
}

// sampled yields the first dim numbers of vectors that a generation has stored, about overlapNodes of nodes. They are
// sampled by a hash of their ids, so that any order of the parts gives the same. A vector is valid until the next.
func sampled(ctx context.Context, store sink.Store, doc *Doc, dim, nodes int) iter.Seq2[string, stored] {
	most := LastCompared(nodes)
	return func(yield func(string, stored) bool) {
		for _, part := range doc.Embeddings {
			for r, err := range embedding.ReadParquet(ctx, store, part.Ref()) {
				if err != nil {
					yield("", stored{err: damaged(doc.Generation, err)})
					return
				}
				if r.Status == embedding.NoText || len(r.Vector) < dim || numeric.HashString(r.NodeID) > most {
					continue
				}
				if !yield(r.NodeID, stored{vector: r.Vector[:dim]}) {
					return
				}
			}
		}
	}
}

// LastCompared is the highest hash of an id that is in the sample of a graph with that many nodes.
func LastCompared(nodes int) uint64 {
	if nodes <= overlapNodes {
		return ^uint64(0)
	}
	return ^uint64(0) / uint64(nodes) * overlapNodes
}

// pair is a node's vectors in two generations, and its bucket of degrees.
type pair struct {
	id            string
	bucket        uint8
	before, after []float32
}

// overlap compares the neighbours of nodes in two generations, nil for too few nodes.
func overlap(pairs []pair, dim int) *OverlapStats {
	if len(pairs) <= overlapNeighbours {
		return nil
	}
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.id, b.id) })
	before, after := make([]float32, 0, len(pairs)*dim), make([]float32, 0, len(pairs)*dim)
	var queries []int32
	bucket := make([]uint8, 0, len(pairs))
	step := (len(pairs) + overlapQueries - 1) / overlapQueries
	for i, p := range pairs {
		before, after, bucket = append(before, p.before...), append(after, p.after...), append(bucket, p.bucket)
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
	return stats
}
