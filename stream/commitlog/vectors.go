package commitlog

import (
	"context"
	"fmt"
	"iter"

	"giantstream/sink"
	"giantstream/sink/rows"
)

// VectorsRow is a row of vectors, and the manifest that committed it.
type VectorsRow struct {
	rows.Vectors
	Seq int64
}

// Vectors yields the newest committed row of vectors of every node and input of a shard, empty rows included, also of
// nodes that are deleted or were never stated. The order of the rows is not sorted, but the same at every call. It
// reads the shard once, and holds the ids of the nodes in memory.
func (c Cut) Vectors(ctx context.Context, store sink.Store, shard int) iter.Seq2[VectorsRow, error] {
	return c.vectors(ctx, store, shard, func(segments []*Segment) iter.Seq2[committed[rows.Vectors], error] {
		return newestRows(ctx, store, rows.NodeVectors, segments, rows.ReadOptions{})
	})
}

// NewestVectors is Vectors in ascending order of node and input. It reads the shard twice.
func (c Cut) NewestVectors(ctx context.Context, store sink.Store, shard int) iter.Seq2[VectorsRow, error] {
	return c.VectorsUntil(ctx, store, shard, Forever)
}

// VectorsUntil is NewestVectors without rows of a later event time.
func (c Cut) VectorsUntil(ctx context.Context, store sink.Store, shard int, until int64) iter.Seq2[VectorsRow, error] {
	return c.vectors(ctx, store, shard, func(segments []*Segment) iter.Seq2[committed[rows.Vectors], error] {
		return newestSorted(ctx, store, rows.NodeVectors, segments, selection{until: until})
	})
}

func (c Cut) vectors(ctx context.Context, store sink.Store, shard int,
	read func(segments []*Segment) iter.Seq2[committed[rows.Vectors], error]) iter.Seq2[VectorsRow, error] {
	return func(yield func(VectorsRow, error) bool) {
		segments, err := c.segments(ctx, store, shard)
		if err != nil {
			yield(VectorsRow{}, fmt.Errorf("vectors of shard %d: %w", shard, err))
			return
		}
		for row, err := range read(segments) {
			if err != nil {
				err = fmt.Errorf("vectors of shard %d: %w", shard, err)
			}
			if !yield(VectorsRow{row.row, row.seq}, err) || err != nil {
				return
			}
		}
	}
}
