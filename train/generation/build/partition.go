package build

import (
	"context"
	"slices"
	"strings"

	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// partition is what is known of a partition's nodes, in memory.
type partition struct {
	nodes []member
	texts []string
	byID  []int // numbers of the nodes in ascending order of ids
}

type member struct {
	node
	labels []string
	to     []int32
	hidden []bool
}

// partitionNodes returns the nodes of the partition, without texts.
func partitionNodes(ctx context.Context, t *work.Task) (*partition, error) {
	p := &partition{}
	if err := eachNode(ctx, t.Build, t.Partition, func(i int, a node) error {
		p.nodes, p.byID = append(p.nodes, member{node: a}), append(p.byID, i)
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(p.byID, func(a, b int) int { return strings.Compare(string(p.nodes[a].id), string(p.nodes[b].id)) })
	return p, nil
}

func readPartition(ctx context.Context, t *work.Task, links bool) (*partition, error) {
	p, err := partitionNodes(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := eachTextBlock(ctx, t.Build, t.Partition, func(_ int, texts []string) error {
		p.texts = append(p.texts, texts...)
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	if !links {
		return p, nil
	}
	if err := eachNeighbours(ctx, t.Build, t.Partition, func(i int, to []int32, hidden []bool) error {
		p.nodes[i].to, p.nodes[i].hidden = to, hidden
		return nil
	}); err != nil {
		return nil, err
	}
	return p, eachBlock(ctx, t.Build, stages.Number, "labels", t.Partition, func(d *sections.Decoder, lo,
		hi int) error {
		for i := lo; i < hi; i++ {
			n := &p.nodes[i]
			for range d.Uvarint() {
				if n.labels = append(n.labels, string(d.StringBytes())); d.Err != nil {
					return d.Err
				}
			}
			if d.Err == nil && len(n.labels) != len(n.to) {
				d.Err = sections.ErrShort
			}
		}
		return nil
	})
}
