package generation

import (
	"context"
	"fmt"
	"iter"

	"giantstream/featurize/labeltree"
	"giantstream/sink/rows"
	"giantstream/train/generation/fit"
)

// rowGroupBytes is the raw size of the training set's row groups: small enough that a trainer which
// reads some at a time mixes them well.
const rowGroupBytes = 2 << 20

// writeDataset writes the training set: every node with a label to learn from and no more than
// max_degree of them, with features and targets. There is one part per shard, with rows in
// ascending id. Held-out edges are not in it.
func (b *build) writeDataset(ctx context.Context, in *fit.Inputs) error {
	b.resources.Progress.Stage("write training set", int64(in.Graph.Len()))
	var parts []Part
	for shard, nodes := range b.corpus.byShard() {
		key := b.key(fmt.Sprintf("dataset/part-%05d.parquet", shard))
		info, err := rows.Write(ctx, b.Store, key, rows.WriteOptions{GroupBytes: rowGroupBytes},
			b.instances(nodes, in))
		if err != nil {
			return err
		}
		parts = append(parts, Part{Key: key, Shard: shard, Rows: info.Rows,
			Bytes: info.Bytes, CRC32C: info.CRC32C})
	}
	b.doc.Dataset = parts
	return nil
}

// instances yields the training rows of the given nodes.
func (b *build) instances(nodes []int32, in *fit.Inputs) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for _, i := range nodes {
			b.resources.Progress.Add(1)
			neighbours := in.Graph.Neighbours.Row(int(i)).Index
			if len(neighbours) == 0 || len(neighbours) > b.doc.Settings.MaxDegree {
				continue
			}
			text, err := in.Texts.Text(int(i))
			if err == nil {
				err = in.Err()
			}
			if err != nil {
				yield(rows.Row{}, err)
				return
			}
			features := in.Features.Row(int(i))
			r := rows.Row{NodeID: in.Graph.IDs[i], Text: text, Class: in.Graph.Classes[i],
				Labels:         make([]string, len(neighbours)),
				FeatureIndices: features.Index, FeatureValues: features.Value,
				Generation: b.doc.Generation, EventTime: b.corpus.meta[i].eventTime}
			for k, l := range neighbours {
				r.Labels[k] = in.Graph.IDs[l]
			}
			r.Targets, r.TargetCounts = labeltree.Targets(in.Tree, neighbours)
			if !yield(r, nil) {
				return
			}
		}
	}
}
