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
	out := t.NewSections(t.Plan.Ranges)
	defer out.Close() //nolint:errcheck // a temporary file
	ranges := rangesOf(t.Plan, x)
	labels, weights := make([][]byte, t.Plan.Ranges), make([][]byte, t.Plan.Ranges) // of a node, by range
	var record []byte
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
			squares := 0.0
			for k, position := range n.To {
				if position < 0 || n.Hidden[k] {
					continue
				}
				r := ranges.PartitionAt(int(position))
				labels[r] = binary.LittleEndian.AppendUint32(labels[r], uint32(int(position)-ranges.Base[r]))
				if n.Weights == nil {
					squares++
					continue
				}
				v := n.Weights[k]
				squares += float64(v) * float64(v)
				weights[r] = binary.LittleEndian.AppendUint32(weights[r], math.Float32bits(v))
			}
			for r, b := range labels {
				if len(b) == 0 {
					continue
				}
				record = binary.LittleEndian.AppendUint32(record[:0], math.Float32bits(float32(squares)))
				record = binary.LittleEndian.AppendUint32(record, uint32(len(b)/4))
				record = append(append(append(record, b...), weights[r]...), row...)
				if err := out.Add(r, record); err != nil {
					return err
				}
				labels[r], weights[r] = b[:0], weights[r][:0]
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return t.PutSections(ctx, "rows", out)
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
