package graph

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// Fact is one of the links behind an entry of a node's row of links: several kinds may lead to one node, and orders
// too.
type Fact struct {
	// Slot is the entry.
	Slot int
	// Kind is "" for none. Orders: the link is one of orders.
	Kind   string
	Orders bool
	Weight float32
	// Time is the event time, in microseconds; 0 where rows have none: of links without weight and kind, and of orders.
	Time int64
}

// appendFacts appends what a row says of its links beside their ends:
//
//	the number of links, their kinds; in plans with weights, for each the number of its label, weight and time
func appendFacts(b []byte, r *generation.Row, weighted bool) ([]byte, error) {
	n := len(r.LinkKinds)
	b = binary.AppendUvarint(b, uint64(n))
	for _, kind := range r.LinkKinds {
		b = sections.AppendString(b, kind)
	}
	if !weighted {
		return b, nil
	}
	if len(r.LinkEnds) != n || len(r.LinkWeights) != n || len(r.LinkTimes) != n {
		return nil, fmt.Errorf("%w: node %q has %d ends of links, %d kinds, %d weights and %d times", sink.ErrDamaged,
			r.NodeID, len(r.LinkEnds), n, len(r.LinkWeights), len(r.LinkTimes))
	}
	for k, end := range r.LinkEnds {
		slot, found := slices.BinarySearch(r.Labels, end)
		if !found {
			return nil, fmt.Errorf("%w: node %q has a link to %q, which is none of its labels", sink.ErrDamaged,
				r.NodeID, end)
		}
		b = binary.AppendUvarint(b, uint64(slot))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(r.LinkWeights[k]))
		b = binary.AppendVarint(b, r.LinkTimes[k])
	}
	return b, nil
}

// readFacts reads what appendFacts has written.
func readFacts(d *sections.Decoder, weighted bool, facts []Fact) []Fact {
	for range d.Uvarint() {
		if facts = append(facts, Fact{Kind: string(d.StringBytes())}); d.Err != nil {
			return facts
		}
	}
	if weighted {
		for k := range facts {
			facts[k].Slot, facts[k].Weight = int(d.Uvarint()), math.Float32frombits(d.Uint32())
			facts[k].Time = d.Varint()
		}
	}
	return facts
}

// addPlain adds the links that go without saying: to labels that no fact is about. It returns them by slot.
func addPlain(facts []Fact, labels int) []Fact {
	stated := make([]bool, labels)
	for _, f := range facts {
		if f.Slot < labels {
			stated[f.Slot] = true
		}
	}
	for slot, is := range stated {
		if !is {
			facts = append(facts, Fact{Slot: slot, Weight: 1})
		}
	}
	slices.SortStableFunc(facts, func(a, b Fact) int { return a.Slot - b.Slot })
	return facts
}

// Row is where the links of a node lead, by its labels, and then, ascending, where those of orders lead that are no
// labels.
type Row struct {
	ends     []uint32 // positions, which may have hiddenBit, or noNode
	partners int      // how many nodes orders link it to
	// Facts are the links, by entry, in plans with weights.
	Facts []Fact
}

// Target returns where an entry leads. ok: to a node, and the evaluation does not hide it.
func (r Row) Target(slot int) (position int32, ok bool) {
	v := r.ends[slot]
	return int32(v &^ hiddenBit), v != noNode && v&hiddenBit == 0
}

// dangling counts the entries that lead to no node.
func (r Row) dangling() (n int) {
	for _, v := range r.ends {
		if v == noNode {
			n++
		}
	}
	return n
}

// Len is the number of entries.
func (r Row) Len() int { return len(r.ends) }

// EachRow calls visit with the links of a partition's nodes, in order. A row is valid until the next call.
func EachRow(ctx context.Context, t *work.Task, x Numbering, p int, visit func(i int, r Row) error) error {
	start, to, err := readAnswers(ctx, t, x, p)
	if err != nil {
		return err
	}
	together, err := readOrdered(ctx, t, p)
	if err != nil {
		return err
	}
	each := func(i int, facts []Fact) error {
		var partners []ordered
		partners, together = cutOrdered(together, i)
		r := Row{ends: to[start[i]:start[i+1]], partners: len(partners)}
		if t.Plan.Weighted {
			facts = addPlain(facts, len(r.ends))
		}
		r.ends, r.Facts = addOrdered(r.ends, partners, facts)
		return visit(i, r)
	}
	if !t.Plan.Weighted {
		for i := range x.SizeOf(p) {
			if err := each(i, nil); err != nil {
				return err
			}
		}
		return nil
	}
	var facts []Fact
	return EachBlock(ctx, t.Build, stages.Number, "facts", p, func(d *sections.Decoder, lo, hi int) error {
		for i := lo; i < hi; i++ {
			if facts = readFacts(d, true, facts[:0]); d.Err != nil {
				return d.Err
			}
			for _, f := range facts {
				if f.Slot >= start[i+1]-start[i] {
					d.Err = sections.ErrShort
					return d.Err
				}
			}
			if err := each(i, facts); err != nil {
				return err
			}
		}
		return nil
	})
}

// readAnswers returns where the labels of a partition's nodes lead: those of node i from start[i] on.
func readAnswers(ctx context.Context, t *work.Task, x Numbering, p int) (start []int, to []uint32, err error) {
	n := x.SizeOf(p)
	start = make([]int, n+1)
	if err := EachBlock(ctx, t.Build, stages.Number, "labels", p, func(d *sections.Decoder, lo, hi int) error {
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
		return nil, nil, err
	}
	to = make([]uint32, start[n])
	for i := range to {
		to[i] = noNode
	}
	for q := range t.Plan.Partitions {
		from, err := t.OutputsOf(ctx, stages.Resolve, q)
		if err != nil {
			return nil, nil, err
		}
		b, err := from.ReadSection(ctx, "answers", p)
		if err != nil {
			return nil, nil, err
		}
		for ; len(b) >= answerBytes; b = b[answerBytes:] {
			source, slot := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
			to[start[source]+int(slot)] = binary.LittleEndian.Uint32(b[8:])
		}
	}
	return start, to, nil
}
