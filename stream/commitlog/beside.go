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

// OrderHorizon says which orders count no more at the cut: the latest of what the manifests of its shards say.
func (c Cut) OrderHorizon(ctx context.Context, store sink.Store) (h rows.Horizon, err error) {
	for shard, seq := range c {
		if seq == 0 {
			continue
		}
		for s, err := range Segments(ctx, store, shard, seq-1, seq) {
			if err != nil {
				return 0, fmt.Errorf("which orders of shard %d count: %w", shard, err)
			}
			h = max(h, s.horizon)
		}
	}
	return h, nil
}

// Orders yields what counts, after the horizon of the cut, of the newest committed row of every order of a shard:
// without a horizon all of it, deleted orders included, else orders with items. The order of the rows is not sorted,
// but the same at every call. It reads the shard once, and holds the ids of the orders in memory.
func (c Cut) Orders(ctx context.Context, store sink.Store, shard int, h rows.Horizon) iter.Seq2[rows.Order, error] {
	all := beside(ctx, c, store, rows.Orders, shard, nil,
		func(r committed[rows.Order]) rows.Order { return r.row })
	return counting(all, h, func(r *rows.Order) *rows.Order { return r })
}

// NewestOrders is Orders in ascending order of input and id, with the manifests. It reads the shard twice.
func (c Cut) NewestOrders(ctx context.Context, store sink.Store, shard int, h rows.Horizon) iter.Seq2[OrderRow, error] {
	return c.OrdersUntil(ctx, store, shard, h, Forever)
}

// OrdersUntil is NewestOrders without rows of a later event time.
func (c Cut) OrdersUntil(ctx context.Context, store sink.Store, shard int, h rows.Horizon, until int64) iter.Seq2[
	OrderRow, error] {
	all := beside(ctx, c, store, rows.Orders, shard, &selection{until: until},
		func(r committed[rows.Order]) OrderRow { return OrderRow{r.row, r.seq} })
	return counting(all, h, func(r *OrderRow) *rows.Order { return &r.Order })
}

// counting leaves of orders what counts.
func counting[O any](all iter.Seq2[O, error], h rows.Horizon, order func(*O) *rows.Order) iter.Seq2[O, error] {
	if h == 0 {
		return all
	}
	return func(yield func(O, error) bool) {
		for row, err := range all {
			if o := order(&row); err == nil {
				if o.Expire(h); o.Deleted {
					continue
				}
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
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
