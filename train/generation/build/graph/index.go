package graph

import (
	"context"
	"fmt"
	"math"
	"slices"

	"giantstream/train/generation"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/relations"
)

// Numbering is what all stages need of the nodes: which positions a partition has, and totals.
type Numbering struct {
	// Base is the first position of each partition, and at last the number of nodes.
	Base        []int  `json:"base"`
	Deleted     int    `json:"deleted"`
	Classes     int    `json:"classes"`
	Fingerprint string `json:"fingerprint"`
	// Kinds counts the links that have a kind, by kind, those to unknown nodes included.
	Kinds map[string]int `json:"kinds,omitempty"`
	// NewestLink is the newest event time of a link, in plans with weights.
	NewestLink int64 `json:"newest_link,omitempty"`
	TextBytes  int64 `json:"text_bytes"`
}

// Nodes is how many nodes the graph has.
func (x Numbering) Nodes() int { return x.Base[len(x.Base)-1] }

// PartitionAt returns the partition of a position.
func (x Numbering) PartitionAt(position int) int {
	p, found := slices.BinarySearch(x.Base, position)
	for found && p+1 < len(x.Base) && x.Base[p+1] == position {
		p++ // the last of those that begin here has it
	}
	if !found {
		p--
	}
	return p
}

// SizeOf returns the number of nodes of a partition.
func (x Numbering) SizeOf(p int) int { return x.Base[p+1] - x.Base[p] }

// LoadNumbering reads what Index has found.
func LoadNumbering(ctx context.Context, b *work.Build) (Numbering, error) {
	return work.StatsOf[Numbering](ctx, b, stages.Index, 0)
}

// Index adds up the nodes. It holds the names of the classes in memory.
func Index(ctx context.Context, t *work.Task) error {
	x := Numbering{Base: []int{0}}
	log, err := t.Log(ctx, t.Doc.Cut)
	if err != nil {
		return err
	}
	graph := log.Fingerprint()
	classes := map[string]bool{}
	for p := range t.Plan.Partitions {
		s, err := work.StatsOf[numberStats](ctx, t.Build, stages.Number, p)
		if err != nil {
			return err
		}
		from, err := t.OutputsOf(ctx, stages.Number, p)
		if err != nil {
			return err
		}
		b, err := from.ReadSection(ctx, "classes", 0)
		if err != nil {
			return err
		}
		for d := (sections.Decoder{Rest: b}); d.More(); {
			classes[string(d.StringBytes())] = true
			if d.Err != nil {
				return from.Explain(d.Err)
			}
		}
		if err := graph.Merge(s.Fingerprint); err != nil {
			return from.Explain(fmt.Errorf("%w: %w", sections.ErrShort, err))
		}
		x.Base = append(x.Base, x.Nodes()+s.Nodes)
		x.Deleted += s.Deleted
		x.TextBytes += s.TextBytes
		x.NewestLink = max(x.NewestLink, s.NewestLink)
		for kind, n := range s.Kinds {
			if x.Kinds == nil {
				x.Kinds = map[string]int{}
			}
			x.Kinds[kind] += n
		}
	}
	x.Classes, x.Fingerprint = len(classes), graph.Sum()
	switch n := x.Nodes(); {
	case n == 0:
		return fmt.Errorf("%w: the graph has no node; check the topics and the field mapping", generation.ErrTooFew)
	case n >= math.MaxInt32:
		return fmt.Errorf("%d nodes: a generation holds fewer than 2^31", n)
	}
	t.Stats = x
	return nil
}

// Describe notes the figures of the graph.
func Describe(ctx context.Context, b *work.Build, doc *generation.Doc) error {
	x, err := LoadNumbering(ctx, b)
	if err != nil {
		return err
	}
	linked, err := LinkTotals(ctx, b)
	if err != nil {
		return err
	}
	var orders *generation.OrderStats
	if b.Plan.Orders {
		if orders, err = describeOrders(ctx, b, linked); err != nil {
			return err
		}
	}
	doc.GraphHash = x.Fingerprint
	doc.Graph = generation.GraphStats{Nodes: x.Nodes(), Deleted: x.Deleted, Links: linked.Links,
		Dangling: linked.Dangling, Hidden: linked.Hidden, Isolated: linked.Isolated, Hubs: linked.Hubs,
		Classes: x.Classes, MaxDegree: linked.MaxDegree, Kinds: x.Kinds, Orders: orders, Weightless: linked.Weightless}
	if b.Plan.Weighted {
		doc.Graph.Relations, err = work.StatsOf[[]relations.Relation](ctx, b, stages.Relations, 0)
	}
	return err
}
