package labels

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"giantstream/featurize/pifa"
	"giantstream/sink"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
	"giantstream/train/numeric"
)

// loadShape returns the length of a label's features, and how labels are numbered.
func loadShape(ctx context.Context, b *work.Build) (dim int, x graph.Numbering, err error) {
	if dim, err = vocabulary.FeatureDim(ctx, b); err == nil {
		x, err = graph.LoadNumbering(ctx, b)
	}
	return dim, x, err
}

// rowsOf is the output of pifa with the features of a partition's labels: float32, a row after the other.
func rowsOf(partition int) string { return fmt.Sprintf("rows-%05d", partition) }

// Aggregate adds up the features of a range of labels. Every label takes its sources in ascending order, so the sums do
// not depend on the number of ranges and partitions. It holds the range's sums in memory, and the projected texts of
// one partition.
func Aggregate(ctx context.Context, t *work.Task) error {
	dim, x, err := loadShape(ctx, t.Build)
	if err != nil {
		return err
	}
	s, err := graph.LinkTotals(ctx, t.Build)
	if err != nil {
		return err
	}
	weighting, err := pifa.ParseWeighting(t.Doc.Settings.Weighting)
	if err != nil {
		return err
	}
	each := t.Plan.Partitions / t.Plan.Ranges
	first, end := t.Partition*each, (t.Partition+1)*each
	base := x.Base[first]
	sums := pifa.NewSketch(x.Base[end]-base, dim)
	switch {
	case s.Instances == 0:
	case t.Plan.Spread:
		err = addSpread(ctx, t, dim, weighting, sums)
	default:
		err = addAllTexts(ctx, t, x, dim, weighting, sums)
	}
	if err != nil {
		return err
	}
	rows := sums.Normalize()
	if s.Instances == 0 {
		// No neighbours, no PIFA: the tree is one of the texts.
		for k := range each {
			own := rows[(x.Base[first+k]-base)*dim : (x.Base[first+k+1]-base)*dim]
			if err := copyTexts(ctx, t, first+k, dim, own); err != nil {
				return err
			}
		}
	}
	for k := range each {
		lo, hi := x.Base[first+k]-base, x.Base[first+k+1]-base
		if err := t.Put(ctx, rowsOf(first+k), "", func(w io.Writer) error {
			var b []byte
			for i := lo; i < hi; i++ {
				b = sections.AppendFloats(b[:0], rows[i*dim:(i+1)*dim])
				if _, err := w.Write(b); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// addAllTexts adds the projected texts of all nodes to the sums of the range's labels that they have.
func addAllTexts(ctx context.Context, t *work.Task, x graph.Numbering, dim int, w pifa.Weighting,
	sums *pifa.Sketch) error {
	each := t.Plan.Partitions / t.Plan.Ranges
	first := t.Partition * each
	arcs := make([]*work.Input, each)
	for k := range arcs {
		from, err := t.OutputsOf(ctx, stages.Resolve, first+k)
		if err != nil {
			return err
		}
		if arcs[k], err = from.OpenSections(ctx, "arcs"); err != nil {
			return err
		}
		defer arcs[k].Close() // all are needed to the end
	}
	for p := range t.Plan.Partitions {
		if err := addSources(ctx, t, p, dim, w, func(add func(arcs []byte, base int) error) error {
			for k := range arcs {
				b, err := arcs[k].ReadSection(p)
				if err == nil {
					err = add(b, x.Base[first+k]-x.Base[first])
				}
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		}, sums); err != nil {
			return err
		}
	}
	return nil
}

// addSources adds the projected texts of a partition to the labels that its nodes have. each calls add with the arcs
// into a partition of labels, and the number of its first label among the sums.
func addSources(ctx context.Context, t *work.Task, p, dim int, w pifa.Weighting,
	each func(add func(arcs []byte, base int) error) error, sums *pifa.Sketch) error {
	sources, err := vocabulary.OpenProjected(ctx, t.Build, p, dim)
	if err != nil {
		return err
	}
	defer sources.Close()
	degree, err := readDegrees(ctx, t, p)
	if err != nil {
		return err
	}
	return each(func(arcs []byte, base int) error {
		for ; len(arcs) >= stages.ArcBytes; arcs = arcs[stages.ArcBytes:] {
			source, target := arc(arcs)
			row, err := sources.RowOf(source)
			if err != nil {
				return err
			}
			sums.AddWeighted(base+target, w.WeightOf(float64(degree(source))), row)
		}
		return nil
	})
}

// arc returns the ends of the first link of arcs, each by its number in its partition.
func arc(arcs []byte) (source, target int) {
	return int(binary.LittleEndian.Uint32(arcs)), int(binary.LittleEndian.Uint32(arcs[4:]))
}

// readDegrees returns the number of known neighbours of a partition's nodes.
func readDegrees(ctx context.Context, t *work.Task, p int) (of func(node int) int, err error) {
	links, err := t.OutputsOf(ctx, stages.Link, p)
	if err != nil {
		return nil, err
	}
	degrees, err := links.ReadSection(ctx, "degrees", 0)
	return func(node int) int { return int(binary.LittleEndian.Uint32(degrees[4*node:])) }, err
}

// copyTexts writes the normalized projections of a partition's texts.
func copyTexts(ctx context.Context, t *work.Task, p, dim int, out []float32) error {
	texts, err := vocabulary.OpenProjected(ctx, t.Build, p, dim)
	if err != nil {
		return err
	}
	defer texts.Close()
	for i := range len(out) / dim {
		row, err := texts.RowOf(i)
		if err != nil {
			return err
		}
		copy(out[i*dim:], row)
	}
	numeric.NormalizeRows(out, dim)
	return nil
}

// OpenPIFARows opens the features of a partition's labels, verified.
func OpenPIFARows(ctx context.Context, b *work.Build, p int) (sink.Object, *work.Done, error) {
	from, err := b.OutputsOf(ctx, stages.PIFA, p/(b.Plan.Partitions/b.Plan.Ranges))
	if err != nil {
		return nil, nil, err
	}
	return from.OpenObject(ctx, rowsOf(p))
}
