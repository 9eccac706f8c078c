package training

import (
	"context"
	"fmt"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/sparse"
	"giantstream/sink/rows"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/labels"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
)

// datasetGroupBytes is the raw size of the training set's row groups, as in a build in one process.
const datasetGroupBytes = 2 << 20

// WriteDataset writes the training set of a partition: its instances, in ascending order of ids.
func WriteDataset(ctx context.Context, t *work.Task) error {
	v, err := vocabulary.LoadVectorizer(ctx, t.Build)
	if err != nil {
		return err
	}
	tree, err := labels.LoadTree(ctx, t.Build)
	if err != nil {
		return err
	}
	p, err := graph.ReadPartition(ctx, t, true)
	if err != nil {
		return err
	}
	psi := &vocabulary.TextCounts{Model: v}
	if err := vocabulary.EachCounts(ctx, t.Build, v, t.Partition, func(_ int, c *vocabulary.TextCounts) error {
		psi.From, psi.Records = c.From, append(psi.Records, c.Records...)
		return nil
	}); err != nil {
		return err
	}
	key := t.ArtifactKey(fmt.Sprintf("dataset/part-%05d.parquet", t.Partition))
	info, err := rows.Nodes.Write(ctx, t.Store, key, rows.WriteOptions{GroupBytes: datasetGroupBytes},
		func(yield func(rows.Row, error) bool) {
			for _, i := range p.ByID {
				n := &p.Nodes[i]
				known, _ := n.Nodes(false)
				if len(known) == 0 || len(known) > t.Doc.Settings.MaxDegree {
					continue
				}
				f := psi.Features(i, sparse.Vector{})
				if err := psi.Err(); err != nil {
					yield(rows.Row{}, err)
					return
				}
				r := rows.Row{NodeID: string(n.ID), Text: p.Texts[i], Class: string(n.Class), FeatureIndices: f.Index,
					FeatureValues: f.Value, Generation: t.Plan.Generation, EventTime: n.Time}
				for k, l := range n.Labels {
					if n.To[k] >= 0 && !n.Hidden[k] {
						r.Labels = append(r.Labels, l)
					}
				}
				r.Targets, r.TargetCounts = labeltree.Targets(tree, known)
				if !yield(r, nil) {
					return
				}
			}
		})
	if err != nil {
		return err
	}
	t.Outputs["part"] = work.Output{Key: key, Bytes: info.Bytes, Checksum: info.Checksum, Rows: info.Rows,
		Shard: t.Partition}
	return nil
}
