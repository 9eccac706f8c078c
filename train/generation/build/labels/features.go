package labels

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/sink"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/numeric"
)

// MakeFeatures makes what the tree is built of where that is not PIFA: the ablations of featurize.label_features.
// Labels that no instance has are zero, whatever the kind; where there is no instance at all, the tree is a random one,
// or one of the texts. It holds the features of a partition in memory.
//
//	rows  float32, a row after the other
func MakeFeatures(ctx context.Context, t *work.Task) error {
	dim, x, err := loadShape(ctx, t.Build)
	if err != nil {
		return err
	}
	s, err := graph.LinkTotals(ctx, t.Build)
	if err != nil {
		return err
	}
	n := x.SizeOf(t.Partition)
	rows := make([]float32, n*dim)
	switch kind := t.Plan.Features; {
	case kind == pifa.Text:
		err = copyTexts(ctx, t, t.Partition, dim, rows)
	case kind == pifa.RandomFeatures || s.Instances == 0:
		for i := range n {
			r := rand.New(rand.NewPCG(t.Doc.Settings.TreeSeed, uint64(x.Base[t.Partition]+i)<<8|'R'))
			for k := range dim {
				rows[i*dim+k] = float32(r.NormFloat64())
			}
		}
		numeric.NormalizeRows(rows, dim)
	case kind == pifa.PIFAIdentity:
		err = sumIdentities(ctx, t, x, dim, rows)
	default:
		err = fmt.Errorf("label features %q: a build does not know them", kind)
	}
	if err == nil && s.Instances > 0 {
		err = clearUnlinked(ctx, t, dim, rows)
	}
	if err != nil {
		return err
	}
	return t.Put(ctx, "rows", "", func(w io.Writer) error {
		_, err := w.Write(sections.AppendFloats(nil, rows))
		return err
	})
}

// eachArcs calls visit with the known links into the partition, by the partition of their sources.
func eachArcs(ctx context.Context, t *work.Task, visit func(p int, arcs []byte) error) error {
	from, err := t.OutputsOf(ctx, stages.Resolve, t.Partition)
	if err != nil {
		return err
	}
	in, err := from.OpenSections(ctx, "arcs")
	if err != nil {
		return err
	}
	defer in.Close()
	for p := range t.Plan.Partitions {
		b, err := in.ReadSection(p)
		if err == nil {
			err = visit(p, b)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clearUnlinked clears the rows of labels that no instance has.
func clearUnlinked(ctx context.Context, t *work.Task, dim int, rows []float32) error {
	linked := make([]bool, len(rows)/dim)
	if err := eachArcs(ctx, t, func(_ int, arcs []byte) error {
		for ; len(arcs) >= stages.ArcBytes; arcs = arcs[stages.ArcBytes:] {
			_, target := arc(arcs)
			linked[target] = true
		}
		return nil
	}); err != nil {
		return err
	}
	for i, is := range linked {
		if !is {
			clear(rows[i*dim : (i+1)*dim])
		}
	}
	return nil
}

// sumIdentities sums up, for each label, a random vector of each of its instances, in ascending order.
func sumIdentities(ctx context.Context, t *work.Task, x graph.Numbering, dim int, rows []float32) error {
	weighting, err := pifa.ParseWeighting(t.Doc.Settings.Weighting)
	if err != nil {
		return err
	}
	of, err := projection.Random(max(1, x.Nodes()), dim, t.Doc.Settings.TreeSeed)
	if err != nil {
		return err
	}
	sums := pifa.NewSketch(len(rows)/dim, dim)
	row := make([]float32, dim)
	one := sparse.Vector{Index: make([]int32, 1), Value: []float32{1}}
	if err := eachArcs(ctx, t, func(p int, arcs []byte) error {
		degree, err := readDegrees(ctx, t, p)
		if err != nil {
			return err
		}
		for ; len(arcs) >= stages.ArcBytes; arcs = arcs[stages.ArcBytes:] {
			source, target := arc(arcs)
			one.Index[0] = int32(x.Base[p] + source)
			of.Apply(one, row)
			sums.AddWeighted(target, weighting.WeightOf(float64(degree(source))), row)
		}
		return nil
	}); err != nil {
		return err
	}
	copy(rows, sums.Normalize())
	return nil
}

// openRows opens what the tree is built of for the labels of a partition, verified.
func openRows(ctx context.Context, b *work.Build, p int) (sink.Object, *work.Done, error) {
	if b.Plan.Features == "" {
		return OpenPIFARows(ctx, b, p)
	}
	from, err := b.OutputsOf(ctx, stages.Features, p)
	if err != nil {
		return nil, nil, err
	}
	return from.OpenObject(ctx, "rows")
}
