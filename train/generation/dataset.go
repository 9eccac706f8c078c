package generation

import (
	"fmt"
	"iter"

	"giantstream/featurize/targets"
	"giantstream/sink/rows"
	"giantstream/train/dataset"
)

// writeDataset writes the training set: every node with a label to learn from
// and no more than max_degree of them, with features and targets. One part
// per shard, rows in ascending id. Held-out edges are not in it.
func (f *building) writeDataset() error {
	f.clock.Stage("write training set", int64(f.known.Len()))
	var parts []Part
	for shard, nodes := range f.corpus.byShard() {
		key := f.key(fmt.Sprintf("dataset/part-%05d.parquet", shard))
		info, err := rows.WriteWith(f.ctx, f.Store, key, rows.WriteOptions{GroupBytes: dataset.GroupBytes}, f.instances(nodes))
		if err != nil {
			return err
		}
		parts = append(parts, Part{key, shard, info.Rows, info.Bytes, info.CRC32C})
	}
	f.doc.Dataset = parts
	return nil
}

// instances yields the training rows of the given nodes.
func (f *building) instances(nodes []int32) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for _, i := range nodes {
			f.clock.Add(1)
			neighbours := f.known.Neighbours.Row(int(i)).Index
			if len(neighbours) == 0 || len(neighbours) > f.doc.Settings.MaxDegree {
				continue
			}
			text, err := f.corpus.texts.text(int(i))
			if err == nil {
				err = f.features.err()
			}
			if err != nil {
				yield(rows.Row{}, err)
				return
			}
			features := f.features.Row(int(i))
			r := rows.Row{NodeID: f.known.IDs[i], Text: text, Class: f.known.Classes[i],
				Labels:         make([]string, len(neighbours)),
				FeatureIndices: features.Index, FeatureValues: features.Value,
				Generation: f.doc.Generation, EventTime: f.corpus.meta[i].eventTime}
			for k, l := range neighbours {
				r.Labels[k] = f.known.IDs[l]
			}
			r.Targets, r.TargetCounts = targets.Of(f.tree, neighbours)
			if !yield(r, nil) {
				return
			}
		}
	}
}
