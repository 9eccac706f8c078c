package command

import (
	"context"
	"slices"
	"strings"

	"giantstream/featurize/pairs"
	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// Ordered is what the orders of a store say of a node.
type Ordered struct {
	// Orders have the node.
	Orders int `json:"orders"`
	// Measure is that of the associations.
	Measure string `json:"measure"`
	// Partners are ordered together with it, the highest association first.
	Partners []Partner `json:"partners"`
}

// Partner is a node, or an item that is none, which is ordered together with another.
type Partner struct {
	ID string `json:"id"`
	// Support is how many orders have both.
	Support     int32   `json:"support"`
	Association float64 `json:"association"`
}

// FindOrdered returns what goes with an item in the newest orders, by a rule; nil if no order has it. It holds the
// items of all orders in memory.
func FindOrdered(ctx context.Context, store sink.Store, shards int, id string, rule pairs.Rule) (*Ordered, error) {
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return nil, err
	}
	horizon, err := cut.OrderHorizon(ctx, store)
	if err != nil {
		return nil, err
	}
	numbers, names := map[string]int32{}, []string{}
	var orders [][]int32
	for shard := range shards {
		for o, err := range cut.Orders(ctx, store, shard, horizon) {
			if err != nil {
				return nil, err
			}
			items := make([]int32, len(o.Items))
			for i, name := range o.Items {
				n, known := numbers[name]
				if !known {
					name = strings.Clone(name)
					n = int32(len(names))
					numbers[name], names = n, append(names, name)
				}
				items[i] = n
			}
			orders = append(orders, items)
		}
	}
	item, ordered := numbers[id]
	if !ordered {
		return nil, nil
	}
	x := pairs.New(len(names), 0)
	for _, items := range orders {
		slices.Sort(items)
		if _, err := x.Add(items, len(items)); err != nil {
			return nil, err
		}
	}
	out := &Ordered{Orders: x.Support(item), Measure: string(rule.Measure), Partners: []Partner{}}
	for _, p := range x.NewCounter().Partners(item, rule, nil) {
		out.Partners = append(out.Partners, Partner{names[p.Item], p.Orders, p.Association})
	}
	return out, nil
}
