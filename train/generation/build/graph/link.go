package graph

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// LinkStats is what link says of a partition.
type LinkStats struct {
	Links     int `json:"links"`
	Known     int `json:"known"`
	Hidden    int `json:"hidden"` // links to nodes of a higher position that the evaluation hides
	Dangling  int `json:"dangling"`
	Isolated  int `json:"isolated"`
	Hubs      int `json:"hubs"`
	MaxDegree int `json:"max_degree"`
	Instances int `json:"instances"`
	// Ordered are links of orders, Partners how many nodes have at least as many as manyPartners says.
	Ordered  int                    `json:"ordered,omitempty"`
	Partners [len(manyPartners)]int `json:"partners,omitzero"`
}

// manyPartners are the numbers of partners that nodes are counted by.
var manyPartners = [...]int{1, 5, 10, 20}

// LinkNodes collects the neighbours of a partition's nodes: those that are stated, and then, ascending, those that
// orders add.
//
//	links    by block: for each node, the number of its links u32 and for each the position u32, noNode for none
//	degrees  known neighbours of each node, u32
func LinkNodes(ctx context.Context, t *work.Task) error {
	x, err := LoadNumbering(ctx, t.Build)
	if err != nil {
		return err
	}
	n := x.SizeOf(t.Partition)
	start := make([]int, n+1)
	if err := EachBlock(ctx, t.Build, stages.Number, "labels", t.Partition, func(d *sections.Decoder, lo,
		hi int) error {
		for i := lo; i < hi; i++ {
			count := d.Uvarint()
			for range count {
				if d.StringBytes(); d.Err != nil {
					return d.Err
				}
			}
			start[i+1] = start[i] + int(count)
		}
		return nil
	}); err != nil {
		return err
	}
	to := make([]uint32, start[n])
	for i := range to {
		to[i] = noNode
	}
	together, err := readOrdered(ctx, t, t.Partition)
	if err != nil {
		return err
	}
	for q := range t.Plan.Partitions {
		from, err := t.OutputsOf(ctx, stages.Resolve, q)
		if err != nil {
			return err
		}
		b, err := from.ReadSection(ctx, "answers", t.Partition)
		if err != nil {
			return err
		}
		for ; len(b) >= answerBytes; b = b[answerBytes:] {
			source, slot := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
			to[start[source]+int(slot)] = binary.LittleEndian.Uint32(b[8:])
		}
	}
	links, degrees := t.NewSections(Blocks(n)), t.NewSections(1)
	defer links.Close()   //nolint:errcheck // temporary files
	defer degrees.Close() //nolint:errcheck
	var s LinkStats
	var b []byte
	for i := range n {
		row := to[start[i]:start[i+1]]
		var partners []ordered
		partners, together = cutOrdered(together, i)
		s.countPartners(len(partners))
		row = addOrdered(row, partners)
		known, all := 0, 0
		b = binary.LittleEndian.AppendUint32(b[:0], uint32(len(row)))
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, v)
			switch {
			case v == noNode:
				s.Dangling++
				continue
			case v&hiddenBit == 0:
				known++
			case int(v&^hiddenBit) > x.Base[t.Partition]+i:
				s.Hidden++
			}
			all++
		}
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
		if err := degrees.Add(0, binary.LittleEndian.AppendUint32(b[:0], uint32(known))); err != nil {
			return err
		}
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

// ReadNeighbours decodes the next node of a block of links: positions in the order of its labels, and then those that
// orders add. hidden says which of
// them the evaluation hides; those that are no nodes are -1.
func ReadNeighbours(d *sections.Decoder) (positions []int32, hidden []bool) {
	n := int(d.Uint32())
	for range n {
		v := d.Uint32()
		if d.Err != nil {
			return nil, nil
		}
		if v == noNode {
			positions, hidden = append(positions, -1), append(hidden, false)
		} else {
			positions, hidden = append(positions, int32(v&^hiddenBit)), append(hidden, v&hiddenBit != 0)
		}
	}
	return positions, hidden
}

// NodesAmong returns the positions that are nodes, ascending; those that are hidden only if all is set.
func NodesAmong(positions []int32, hidden []bool, all bool) []int32 {
	out := make([]int32, 0, len(positions))
	for k, p := range positions {
		if p >= 0 && (all || !hidden[k]) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}
