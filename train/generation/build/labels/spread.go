package labels

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"giantstream/featurize/pifa"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
)

// rangesOf are the first positions of the ranges of labels.
func rangesOf(p stages.Plan, x graph.Numbering) graph.Numbering {
	var r graph.Numbering
	for k := 0; k <= p.Partitions; k += p.Partitions / p.Ranges {
		r.Base = append(r.Base, x.Base[k])
	}
	return r
}

// SpreadTexts writes for each range of labels the projected texts of those nodes of a partition that have labels in it.
// A PIFA task needs the projected text of every node that has a label in its range. Without spread it reads those of
// all nodes; with it, only the rows that it needs, which are few where there are many ranges.
//
//	rows  section r: by node, the sum of the squares of its known neighbours' weights float32, how many of them are in
//	      range r u32, for each its number in the range u32, in plans with weights for each its weight float32, and
//	      its row as bfloat16
func SpreadTexts(ctx context.Context, t *work.Task) error {
	dim, x, err := loadShape(ctx, t.Build)
	if err != nil {
		return err
	}
	texts, err := vocabulary.OpenProjected(ctx, t.Build, t.Partition, dim)
	if err != nil {
		return err
	}
	defer texts.Close()
	s := spreader{ranges: rangesOf(t.Plan, x), out: t.NewSections(t.Plan.Ranges),
		labels: make([][]byte, t.Plan.Ranges), weights: make([][]byte, t.Plan.Ranges)}
	defer s.out.Close() //nolint:errcheck // a temporary file
	if err := graph.EachBlock(ctx, t.Build, stages.Link, "links", t.Partition, func(d *sections.Decoder, lo,
		hi int) error {
		rows, err := texts.BlockRows(lo, hi)
		if err != nil {
			return err
		}
		for i := lo; i < hi; i++ {
			row := rows[:2*dim]
			rows = rows[2*dim:]
			n := graph.ReadNeighbours(d, t.Plan.Weighted)
			if d.Err != nil {
				return d.Err
			}
			if err := s.spread(&n, row); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return t.PutSections(ctx, "rows", s.out)
}

// spreader writes nodes to the ranges of their labels.
type spreader struct {
	ranges          graph.Numbering
	out             *sections.Writer
	labels, weights [][]byte // of a node, by range
	record          []byte
}

// spread writes the row of a node to each range that has a label of it.
func (s *spreader) spread(n *graph.Neighbours, row []byte) error {
	squares := 0.0
	for k, position := range n.To {
		if position < 0 || n.Hidden[k] {
			continue
		}
		r := s.ranges.PartitionAt(int(position))
		s.labels[r] = binary.LittleEndian.AppendUint32(s.labels[r], uint32(int(position)-s.ranges.Base[r]))
		if n.Weights == nil {
			squares++
			continue
		}
		v := n.Weights[k]
		squares += float64(v) * float64(v)
		s.weights[r] = binary.LittleEndian.AppendUint32(s.weights[r], math.Float32bits(v))
	}
	for r, b := range s.labels {
		if len(b) == 0 {
			continue
		}
		s.record = binary.LittleEndian.AppendUint32(s.record[:0], math.Float32bits(float32(squares)))
		s.record = binary.LittleEndian.AppendUint32(s.record, uint32(len(b)/4))
		s.record = append(append(append(s.record, b...), s.weights[r]...), row...)
		if err := s.out.Add(r, s.record); err != nil {
			return err
		}
		s.labels[r], s.weights[r] = b[:0], s.weights[r][:0]
	}
	return nil
}

// addSpread adds what spread has written for a range of labels to their sums, in the order of the sources.
func addSpread(ctx context.Context, t *work.Task, dim int, w pifa.Weighting, sums *pifa.Sketch) error {
	row := make([]float32, dim)
	var b []byte
	for p := range t.Plan.Partitions {
		from, err := t.OutputsOf(ctx, stages.Spread, p)
		if err != nil {
			return err
		}
		in, err := from.OpenSections(ctx, "rows")
		if err != nil {
			return err
		}
		b, err = in.ReadSectionInto(b, t.Partition)
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
		d := sections.Decoder{Rest: b}
		for d.More() {
			weight := w.WeightOf(float64(math.Float32frombits(d.Uint32())))
			labels := d.Bytes(4 * uint64(d.Uint32()))
			var weights []byte
			if t.Plan.Weighted {
				weights = d.Bytes(uint64(len(labels)))
			}
			stored := d.Bytes(2 * uint64(dim))
			if d.Err != nil {
				return from.Explain(d.Err)
			}
			sections.ReadBF16(stored, row)
			for ; len(labels) > 0; labels = labels[4:] {
				target := int(binary.LittleEndian.Uint32(labels))
				if target >= sums.Len() {
					return from.Explain(fmt.Errorf("%w: label %d of a range of %d", sections.ErrShort, target,
						sums.Len()))
				}
				of := weight
				if weights != nil {
					of *= math.Float32frombits(binary.LittleEndian.Uint32(weights))
					weights = weights[4:]
				}
				sums.AddWeighted(target, of, row)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
