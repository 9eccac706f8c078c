package graph

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"giantstream/featurize/pairs"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// ridgeBytes is about what the regressions take that are held at a time, and an eighth of the memory if that is less.
const ridgeBytes = 256 << 20

// FindComplements writes what goes with what. It holds all orders in memory, and the ids of what is ordered.
func FindComplements(ctx context.Context, t *work.Task) error {
	orders, ids, err := readOrdersOfIDs(ctx, t)
	if err != nil {
		return err
	}
	s, key := &generation.ComplementStats{}, t.ArtifactKey(generation.GoesWithName)
	info, err := generation.WriteComplements(ctx, t.Store, key, t.Plan.Generation, complements(ctx, t, orders, ids, s))
	if err != nil {
		return err
	}
	s.Rows, t.Stats = info.Rows, s
	t.Outputs[generation.GoesWithName] = work.Output{Key: key, Bytes: info.Bytes, Checksum: info.Checksum,
		Rows: info.Rows}
	return nil
}

// readOrdersOfIDs returns the orders of the cut, and the ids of the nodes that they have, by position.
func readOrdersOfIDs(ctx context.Context, t *work.Task) (*pairs.Incidence, []string, error) {
	x, err := LoadNumbering(ctx, t.Build)
	if err != nil {
		return nil, nil, err
	}
	keys, err := readKeys(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	orders, err := readOrders(ctx, t, x, keys, &generation.OrderStats{}, nil)
	if err != nil {
		return nil, nil, err
	}
	const header = 16 // of a string
	ids, taken := make([]string, x.Nodes()), int64(x.Nodes()*header)
	for p := range t.Plan.Partitions {
		if err := EachNode(ctx, t.Build, p, func(i int, a Node) error {
			if at := x.Base[p] + i; orders.Support(int32(at)) > 0 {
				ids[at] = string(a.ID)
				taken += int64(len(a.ID))
			}
			return nil
		}); err != nil {
			return nil, nil, err
		}
	}
	if limit := t.MemoryLimit; limit > 0 && orders.MemoryBytes()+taken > limit {
		return nil, nil, fmt.Errorf("%d orders and the ids of what they have take more than featurize.memory_limit, "+
			"%d bytes: raise it, or set links.from_orders.max_partners: 0 to make nothing of orders", orders.Orders(),
			limit)
	}
	return orders, ids, nil
}

// complements yields the rows, computed for some items at a time.
func complements(ctx context.Context, t *work.Task, orders *pairs.Incidence, ids []string,
	s *generation.ComplementStats) iter.Seq2[generation.Complement, error] {
	var items []int32
	for i := range int32(len(ids)) {
		if orders.Support(i) > 0 {
			items = append(items, i)
		}
	}
	slices.SortFunc(items, func(a, b int32) int { return strings.Compare(ids[a], ids[b]) })
	bytes := int64(ridgeBytes)
	if t.MemoryLimit > 0 {
		bytes = min(bytes, t.MemoryLimit/8)
	}
	counters := orders.NewCounters(countersFor(t.Workers, t.MemoryLimit, orders.CounterBytes()))
	return func(yield func(generation.Complement, error) bool) {
		for i, hints := range counters.AllRidges(items, pairs.DefaultRidge, bytes) {
			if ctx.Err() != nil {
				yield(generation.Complement{}, ctx.Err())
				return
			}
			s.Items += min(1, len(hints))
			for _, c := range complementsOf(i, hints, ids) {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// complementsOf are the rows of an item: the highest score first, of equal ones the smaller id.
func complementsOf(item int32, hints []pairs.Hint, ids []string) []generation.Complement {
	rows := make([]generation.Complement, len(hints))
	for k, h := range hints {
		rows[k] = generation.Complement{Item: ids[item], Partner: ids[h.Partner], Score: float32(h.Weight),
			Support: h.Orders}
	}
	slices.SortFunc(rows, func(a, b generation.Complement) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Partner, b.Partner))
	})
	return rows
}

// DescribeComplements notes how much goes with what.
func DescribeComplements(ctx context.Context, b *work.Build, doc *generation.Doc) error {
	if !b.Plan.GoesWith {
		return nil
	}
	s, err := work.StatsOf[generation.ComplementStats](ctx, b, stages.GoesWith, 0)
	doc.GoesWith = &s
	return err
}
