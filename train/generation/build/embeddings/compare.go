package embeddings

import (
	"context"

	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/labels"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/training"
	"giantstream/train/generation/build/work"
)

// MapParent compares the tree with that of the parent generation. It holds about 40 bytes a node in memory: the keys of
// all nodes, both trees and the labels that both have.
func MapParent(ctx context.Context, t *work.Task) error {
	tree, err := labels.LoadTree(ctx, t.Build)
	if err != nil {
		return err
	}
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	find, err := graph.NodeFinder(ctx, t, x)
	if err != nil {
		return err
	}
	s, err := generation.MapParent(ctx, t.Store, t.Doc, tree, find, func(known []bool) (n int, err error) {
		return unknownLinks(ctx, t, known)
	}, t.TaskResources().Log)
	t.Stats = parentStats[generation.MappingStats]{s}
	return err
}

// parentStats wraps figures that there are none of where the parent is gone.
type parentStats[T any] struct {
	Stats *T `json:"stats,omitempty"`
}

// unknownLinks counts the known links to labels that the parent does not know.
func unknownLinks(ctx context.Context, t *work.Task, known []bool) (n int, err error) {
	for p := range t.Plan.Partitions {
		if err := graph.EachNeighbours(ctx, t.Build, p, func(_ int, row graph.Neighbours) error {
			for k, j := range row.To {
				if j >= 0 && !row.Hidden[k] && !known[j] {
					n++
				}
			}
			return ctx.Err()
		}); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// CompareParent compares the embeddings with those of the parent generation, on a sample that goes by the ids' hashes:
// the nodes of the first positions. Of the nodes' degrees it knows the links that they have themselves.
func CompareParent(ctx context.Context, t *work.Task) error {
	x, err := graph.LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	trained, err := work.StatsOf[training.Stats](ctx, t.Build, stages.Encoder, 0)
	if err != nil {
		return err
	}
	doc := *t.Doc
	doc.Encoder, doc.Graph.Nodes, doc.Embeddings = trained.EncoderStats, x.Nodes(), nil
	degree := map[string]int{}
	last := graph.PartitionOf(generation.LastCompared(x.Nodes()), t.Plan.Partitions)
	for p := range last + 1 {
		from, err := t.OutputsOf(ctx, t.Plan.EmbeddingStage(), p)
		if err != nil {
			return err
		}
		doc.Embeddings = append(doc.Embeddings, from.ParquetParts()...)
		var ids []string
		if err := graph.EachNode(ctx, t.Build, p, func(_ int, a graph.Node) error {
			ids = append(ids, string(a.ID))
			return nil
		}); err != nil {
			return err
		}
		if err := graph.EachNeighbours(ctx, t.Build, p, func(i int, n graph.Neighbours) error {
			positions, _ := n.Nodes(true)
			degree[ids[i]] = len(positions)
			return nil
		}); err != nil {
			return err
		}
	}
	s, err := generation.CompareParent(ctx, t.Store, &doc, func(id string) int { return degree[id] },
		t.TaskResources().Log)
	t.Stats = parentStats[generation.OverlapStats]{s}
	return err
}
