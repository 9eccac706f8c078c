package generation

import (
	"context"
	"fmt"
	"iter"

	"giantstream/featurize/labeltree"
	"giantstream/sink"
	"giantstream/sink/parquetio"
)

// labelsFormat is the name and version of labels.parquet.
const labelsFormat = "labels/1"

// label is a row of labels.parquet: row i is the tree's label i.
type label struct {
	NodeID   string  `parquet:"node_id"`
	Clusters []int32 `parquet:"clusters,list"`
}

// WriteLabels stores which label is in which cluster. ids are those of the labels, in the tree's order.
func WriteLabels(ctx context.Context, store sink.Store, key string, ids iter.Seq2[string, error],
	tree *labeltree.Tree) error {
	format := parquetio.Format[label]{
		Name:       labelsFormat,
		Size:       func(l *label) int { return len(l.NodeID) + 4*len(l.Clusters) },
		Generation: func(*label) int64 { return 0 },
	}
	_, err := parquetio.Put(ctx, store, key, format, func(yield func(label, error) bool) {
		i := -1
		for id, err := range ids {
			i++
			if err != nil {
				yield(label{}, err)
				return
			}
			l := label{NodeID: id}
			if tree.Cluster(0, i) >= 0 {
				for level := range tree.Levels() {
					l.Clusters = append(l.Clusters, tree.Cluster(level, i))
				}
			}
			if !yield(l, nil) {
				return
			}
		}
	})
	return err
}

// readLabels yields the ids of the labels in the tree's order.
func readLabels(ctx context.Context, store sink.Store, doc *Doc) iter.Seq2[label, error] {
	return func(yield func(label, error) bool) {
		object, err := doc.open(ctx, store, LabelsName)
		if err != nil {
			yield(label{}, err)
			return
		}
		defer object.Close() //nolint:errcheck // read only
		columns := []parquetio.Column[label]{
			parquetio.Scalar("node_id", parquetio.String(), func(l *label, v string) { l.NodeID = v }),
		}
		for l, err := range parquetio.Read(object, object.Size(), labelsFormat, columns) {
			if err != nil {
				err = fmt.Errorf("%s: %w", Prefix(doc.Generation)+LabelsName, err)
			}
			if !yield(l, err) {
				return
			}
		}
	}
}
