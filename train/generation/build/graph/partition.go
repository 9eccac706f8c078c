package graph

import (
	"context"
	"slices"
	"strings"

	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// Partition is what is known of a partition's nodes, in memory.
type Partition struct {
	Nodes []Member
	Texts []string
	ByID  []int // numbers of the nodes in ascending order of ids
}

// Member is a node of a partition. The first neighbours are those of its labels.
type Member struct {
	Node
	Labels []string
	Neighbours
}

// PartitionNodes returns the nodes of the partition, without texts.
func PartitionNodes(ctx context.Context, t *work.Task) (*Partition, error) {
	p := &Partition{}
	if err := EachNode(ctx, t.Build, t.Partition, func(i int, a Node) error {
		p.Nodes, p.ByID = append(p.Nodes, Member{Node: a}), append(p.ByID, i)
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(p.ByID, func(a, b int) int { return strings.Compare(string(p.Nodes[a].ID), string(p.Nodes[b].ID)) })
	return p, nil
}

// ReadPartition returns the nodes of the partition with their texts, and with their links if these are asked for.
func ReadPartition(ctx context.Context, t *work.Task, links bool) (*Partition, error) {
	p, err := PartitionNodes(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := EachTextBlock(ctx, t.Build, t.Partition, func(_ int, texts []string) error {
		p.Texts = append(p.Texts, texts...)
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	if !links {
		return p, nil
	}
	if err := EachNeighbours(ctx, t.Build, t.Partition, func(i int, n Neighbours) error {
		p.Nodes[i].Neighbours = n
		return nil
	}); err != nil {
		return nil, err
	}
	return p, EachBlock(ctx, t.Build, stages.Number, "labels", t.Partition, func(d *sections.Decoder, lo,
		hi int) error {
		for i := lo; i < hi; i++ {
			n := &p.Nodes[i]
			for range d.Uvarint() {
				if n.Labels = append(n.Labels, string(d.StringBytes())); d.Err != nil {
					return d.Err
				}
			}
			if d.Err == nil && len(n.Labels) > len(n.To) {
				d.Err = sections.ErrShort
			}
		}
		return nil
	})
}
