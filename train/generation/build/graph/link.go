package graph

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// LinkStats is what link says of a partition.
type LinkStats struct {
	Links    int `json:"links"`
	Known    int `json:"known"`
	Hidden   int `json:"hidden"` // links to nodes of a higher position that the evaluation hides
	Dangling int `json:"dangling"`
	// Weightless are links that are left out since they weigh nothing.
	Weightless int `json:"weightless,omitempty"`
	Isolated   int `json:"isolated"`
	Hubs       int `json:"hubs"`
	MaxDegree  int `json:"max_degree"`
	Instances  int `json:"instances"`
	// Ordered are links of orders, Partners how many nodes have at least as many as manyPartners says.
	Ordered  int                    `json:"ordered,omitempty"`
	Partners [len(manyPartners)]int `json:"partners,omitzero"`
}

// manyPartners are the numbers of partners that nodes are counted by.
var manyPartners = [...]int{1, 5, 10, 20}

// LinkNodes collects the neighbours of a partition's nodes: those that are stated, and then, ascending, those that
// orders add.
//
//	links    by block: for each node, the number of its links u32 and for each the position u32, noNode for none; in
//	         plans with weights, then for each its weight float32
//	degrees  known neighbours of each node, u32
func LinkNodes(ctx context.Context, t *work.Task) error {
	x, err := LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	w, err := loadWeights(ctx, t, x)
	if err != nil {
		return err
	}
	links, degrees := t.NewSections(Blocks(x.SizeOf(t.Partition))), t.NewSections(1)
	defer links.Close()   //nolint:errcheck // temporary files
	defer degrees.Close() //nolint:errcheck
	var s LinkStats
	var b []byte
	if err := EachRow(ctx, t, x, t.Partition, func(i int, r Row) error {
		s.countPartners(r.partners)
		s.Dangling += r.dangling()
		weights, dropped := w.weigh(r)
		s.Weightless += dropped
		known, all := 0, 0
		b = binary.LittleEndian.AppendUint32(b[:0], uint32(len(r.ends)))
		for _, v := range r.ends {
			b = binary.LittleEndian.AppendUint32(b, v)
			switch {
			case v == noNode:
				continue
			case v&hiddenBit == 0:
				known++
			case int(v&^hiddenBit) > x.Base[t.Partition]+i:
				s.Hidden++
			}
			all++
		}
		b = sections.AppendFloats(b, weights)
		s.Links, s.Known, s.MaxDegree = s.Links+all, s.Known+known, max(s.MaxDegree, all)
		if all == 0 {
			s.Isolated++
		}
		if all > t.Doc.Settings.MaxDegree {
			s.Hubs++
		}
		if known > 0 && known <= t.Doc.Settings.MaxDegree {
			s.Instances++
		}
		if err := links.Add(i/Block, b); err != nil {
			return err
		}
		return degrees.Add(0, binary.LittleEndian.AppendUint32(b[:0], uint32(known)))
	}); err != nil {
		return err
	}
	t.Stats = s
	return errors.Join(t.PutSections(ctx, "links", links), t.PutSections(ctx, "degrees", degrees))
}

// countPartners counts a node by its number of partners.
func (s *LinkStats) countPartners(n int) {
	s.Ordered += n
	for k, least := range manyPartners {
		if n >= least {
			s.Partners[k]++
		}
	}
}

// LinkTotals adds up the figures of all partitions.
func LinkTotals(ctx context.Context, b *work.Build) (sum LinkStats, err error) {
	for p := range b.Plan.Partitions {
		s, err := work.StatsOf[LinkStats](ctx, b, stages.Link, p)
		if err != nil {
			return sum, err
		}
		sum.Links += s.Links
		sum.Known += s.Known
		sum.Hidden += s.Hidden
		sum.Dangling += s.Dangling
		sum.Weightless += s.Weightless
		sum.Isolated += s.Isolated
		sum.Hubs += s.Hubs
		sum.Instances += s.Instances
		sum.Ordered += s.Ordered
		for k, n := range s.Partners {
			sum.Partners[k] += n
		}
		sum.MaxDegree = max(sum.MaxDegree, s.MaxDegree)
	}
	return sum, nil
}

// Neighbours are the links of a node: positions in the order of its labels, and then those that orders add; -1 for
// those that are no nodes. Hidden says which of them the evaluation hides. Weights are nil in plans without.
type Neighbours struct {
	To      []int32
	Hidden  []bool
	Weights []float32
}

// ReadNeighbours decodes the next node of a block of links.
func ReadNeighbours(d *sections.Decoder, weighted bool) (n Neighbours) {
	for range d.Uint32() {
		v := d.Uint32()
		if d.Err != nil {
			return Neighbours{}
		}
		if v == noNode {
			n.To, n.Hidden = append(n.To, -1), append(n.Hidden, false)
		} else {
			n.To, n.Hidden = append(n.To, int32(v&^hiddenBit)), append(n.Hidden, v&hiddenBit != 0)
		}
	}
	if weighted {
		n.Weights = make([]float32, len(n.To))
		for k := range n.Weights {
			n.Weights[k] = math.Float32frombits(d.Uint32())
		}
	}
	return n
}

// Nodes returns the positions that are nodes, ascending, and their weights; those that are hidden only if all is set.
func (n Neighbours) Nodes(all bool) (positions []int32, weights []float32) {
	slots := make([]int, 0, len(n.To))
	for k, p := range n.To {
		if p >= 0 && (all || !n.Hidden[k]) {
			slots = append(slots, k)
		}
	}
	slices.SortStableFunc(slots, func(a, b int) int { return cmp.Compare(n.To[a], n.To[b]) })
	positions = make([]int32, len(slots))
	for i, k := range slots {
		positions[i] = n.To[k]
		if n.Weights != nil {
			weights = append(weights, n.Weights[k])
		}
	}
	return positions, weights
}
