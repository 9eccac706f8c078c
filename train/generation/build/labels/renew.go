package labels

import (
	"context"
	"fmt"

	"giantstream/featurize/labeltree"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

// renewTree returns the parent's tree for the labels of the cut, and its figures. It holds the features of all labels
// in memory.
func renewTree(ctx context.Context, t *work.Task) (*labeltree.Tree, treeStats, error) {
	var out treeStats
	dim, x, err := loadShape(ctx, t.Build)
	if err != nil {
		return nil, out, err
	}
	before, err := work.ReadArtifact(ctx, t.Build, stages.Start, generation.TreeName, labeltree.Read)
	if err != nil {
		return nil, out, err
	}
	start, err := t.OutputsOf(ctx, stages.Start, 0)
	if err != nil {
		return nil, out, err
	}
	rows, from := make([]float32, x.Nodes()*dim), make([]int32, 0, x.Nodes())
	for p := range t.Plan.Partitions {
		b, err := start.ReadSection(ctx, "from", p)
		if err != nil {
			return nil, out, err
		}
		from = append(from, sections.ReadInts(b)...)
		if err := readRows(ctx, t, p, rows[x.Base[p]*dim:x.Base[p+1]*dim]); err != nil {
			return nil, out, err
		}
	}
	features, err := labeltree.Dense(rows, dim)
	if err != nil {
		return nil, out, err
	}
	tree, err := fit.RenewTree(before, from, features, t.Doc.Settings, t.Workers)
	if err != nil {
		return nil, out, err
	}
	level, divided := labeltree.Divided(before, tree, from)
	out = treeStats{Level: level, Subtrees: len(divided), TreeStats: generation.TreeStats{Labels: tree.Labels(),
		MeanCosine: tree.MeanCosine(tree.Levels()-1, features, t.Workers)}}
	for l := range tree.Levels() {
		out.Levels = append(out.Levels, tree.Clusters(l))
	}
	return tree, out, nil
}

// readRows reads the features of a partition's labels that the tree is built of.
func readRows(ctx context.Context, t *work.Task, p int, rows []float32) error {
	object, from, err := openRows(ctx, t.Build, p)
	if err != nil {
		return err
	}
	defer object.Close()
	b := make([]byte, graph.Block*4)
	for len(rows) > 0 {
		some := rows[:min(len(rows), graph.Block)]
		at := object.Size() - int64(4*len(rows))
		if n, err := object.ReadAt(b[:4*len(some)], at); n < 4*len(some) {
			return from.Explain(fmt.Errorf("%w: %w", sections.ErrShort, err))
		}
		sections.ReadFloats(b, some)
		rows = rows[len(some):]
	}
	return nil
}
