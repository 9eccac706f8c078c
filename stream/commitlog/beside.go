package commitlog

import (
	"context"
	"fmt"
	"iter"

	"giantstream/sink"
	"giantstream/sink/rows"
)

// OrderRow is a row of an order, and the manifest that committed it.
type OrderRow struct {
	rows.Order
	Seq int64
}

// Orders yields the newest committed row of every order of a shard, deleted orders included. The order of the rows is
// not sorted, but the same at every call. It reads the shard once, and holds the ids of the orders in memory.
func (c Cut) Orders(ctx context.Context, store sink.Store, shard int) iter.Seq2[rows.Order, error] {
	return beside(ctx, c, store, rows.Orders, shard, nil,
		func(r committed[rows.Order]) rows.Order { return r.row })
}

// NewestOrders is Orders in ascending order of input and id, with the manifests. It reads the shard twice.
func (c Cut) NewestOrders(ctx context.Context, store sink.Store, shard int) iter.Seq2[OrderRow, error] {
	return c.OrdersUntil(ctx, store, shard, Forever)
}

// OrdersUntil is NewestOrders without rows of a later event time.
func (c Cut) OrdersUntil(ctx context.Context, store sink.Store, shard int, until int64) iter.Seq2[OrderRow, error] {
	return beside(ctx, c, store, rows.Orders, shard, &selection{until: until},
		func(r committed[rows.Order]) OrderRow { return OrderRow{r.row, r.seq} })
}

// VectorsRow is a row of vectors, and the manifest that committed it.
type VectorsRow struct {
	rows.Vectors
	Seq int64
}

// Vectors yields the newest committed row of vectors of every node and input of a shard, empty rows included, also of
// nodes that are deleted or were never stated. The order of the rows is not sorted, but the same at every call. It
// reads the shard once, and holds the ids of the nodes in memory.
func (c Cut) Vectors(ctx context.Context, store sink.Store, shard int) iter.Seq2[VectorsRow, error] {
	return beside(ctx, c, store, rows.NodeVectors, shard, nil, vectorsRow)
}

// NewestVectors is Vectors in ascending order of node and input. It reads the shard twice.
func (c Cut) NewestVectors(ctx context.Context, store sink.Store, shard int) iter.Seq2[VectorsRow, error] {
	return c.VectorsUntil(ctx, store, shard, Forever)
}

// VectorsUntil is NewestVectors without rows of a later event time.
func (c Cut) VectorsUntil(ctx context.Context, store sink.Store, shard int, until int64) iter.Seq2[VectorsRow, error] {
	return beside(ctx, c, store, rows.NodeVectors, shard, &selection{until: until}, vectorsRow)
}

func vectorsRow(r committed[rows.Vectors]) VectorsRow { return VectorsRow{r.row, r.seq} }

// beside yields the newest rows of a table beside that of the nodes: sorted, as far as they are selected, or all of
// them unsorted.
func beside[R, O any](ctx context.Context, c Cut, store sink.Store, t *rows.Table[R], shard int, sorted *selection,
	out func(committed[R]) O) iter.Seq2[O, error] {
	return func(yield func(O, error) bool) {
		var none committed[R]
		segments, err := c.segments(ctx, store, shard)
		if err != nil {
			yield(out(none), fmt.Errorf("%s of shard %d: %w", t.Name, shard, err))
			return
		}
		all := newestRows(ctx, store, t, segments, rows.ReadOptions{})
		if sorted != nil {
			all = newestSorted(ctx, store, t, segments, *sorted)
		}
		for row, err := range all {
			if err != nil {
				err = fmt.Errorf("%s of shard %d: %w", t.Name, shard, err)
			}
			if !yield(out(row), err) || err != nil {
				return
			}
		}
	}
}
