package shard

import (
	"fmt"
	"math/rand/v2"

	"giantstream/stream/mutation"
)

// randomRecord draws a record of any kind over few nodes and few event times, so that everything
// collides with everything.
func randomRecord(rng *rand.Rand, nodes int) (topic string, eventTime int64, r record) {
	id := func() string { return fmt.Sprintf("n%d", rng.IntN(nodes)) }
	ids := func() []string {
		out := make([]string, rng.IntN(4))
		for i := range out {
			out[i] = id()
		}
		return out
	}
	src := id()
	eventTime = int64(rng.IntN(12))
	switch rng.IntN(19) {
	case 13, 14, 15:
		return ordersTopic, eventTime, randomOrder(rng, ids())
	case 10, 11, 12:
		m := mutation.Mutation{Op: mutation.SetAttributes, ID: src, Attributes: mutation.NoAttributes}
		if rng.IntN(4) > 0 {
			m.Attributes = fmt.Sprintf(`{"price":%d}`, rng.IntN(5))
		}
		switch rng.IntN(4) {
		case 0: // vectors beside attributes
			m = stateVectors(rng, m)
		case 1: // vectors alone
			m.Attributes = ""
			m = stateVectors(rng, m)
		}
		return pricesTopic, eventTime, record{m}
	case 0, 1, 2:
		m := mutation.Mutation{Op: mutation.PutNode, ID: src, Text: fmt.Sprintf("text %d", rng.IntN(5)), Class: "c"}
		if rng.IntN(2) == 0 { // a record that may change attributes alone
			m.Text, m.Attributes = "text", fmt.Sprintf(`{"brand":"b%d","price":0}`, rng.IntN(3))
		}
		if rng.IntN(2) == 0 {
			m.HasEdges, m.Others, m.Kind = true, ids(), randomKind(rng)
			for range m.Others {
				if m.Kinds = append(m.Kinds, randomKind(rng)); rng.IntN(4) == 0 {
					m.Kinds[len(m.Kinds)-1] = viewed
				}
			}
		}
		if rng.IntN(2) == 0 {
			m = stateVectors(rng, m)
		}
		return nodesTopic, eventTime, record{m}
	case 3:
		return nodesTopic, eventTime, record{{Op: mutation.DeleteNode, ID: src, HasVectors: rng.IntN(2) == 0}}
	case 4:
		return edgesTopic, eventTime, record{{Op: mutation.DeleteEdge, ID: src, Other: id(), Kind: randomKind(rng)}}
	case 5:
		return edgesTopic, eventTime, record{{Op: mutation.SetEdges, ID: src, Others: ids(), Weight: randomWeight(rng),
			Kind: randomKind(rng)}}
	case 6:
		return edgesTopic, eventTime, record{{Op: mutation.ClearEdges, ID: src}}
	case 16, 17, 18:
		weight, op := randomWeight(rng), mutation.PutEdge
		if rng.IntN(3) == 0 {
			weight, op = 0, mutation.DeleteEdge
		}
		for _, dst := range append(ids(), id()) {
			r = append(r, mutation.Mutation{Op: op, ID: src, Other: dst, Weight: weight, Kind: viewed})
		}
		return viewsTopic, eventTime, r
	}
	weight, kind := randomWeight(rng), randomKind(rng)
	for _, dst := range append(ids(), id()) { // one record, many edges
		r = append(r, mutation.Mutation{Op: mutation.PutEdge, ID: src, Other: dst, Weight: weight, Kind: kind})
	}
	return edgesTopic, eventTime, r
}

// viewed is the kind of the edges of viewsTopic.
var viewed = mutation.Kind{Name: "viewed"}

// randomWeight draws what a record says of the weight of its edges, often nothing.
func randomWeight(rng *rand.Rand) mutation.Weight {
	if rng.IntN(2) == 0 {
		return 0
	}
	return mutation.WeightOf(float32(rng.IntN(4)) / 2)
}

// randomKind draws the kind of a record's edges, often none.
func randomKind(rng *rand.Rand) mutation.Kind {
	return []mutation.Kind{{}, {}, {Name: "bought"}, {Name: "part", Directed: true}}[rng.IntN(4)]
}

// randomOrder draws what a record states of an order, of any mode.
func randomOrder(rng *rand.Rand, items []string) (r record) {
	id := fmt.Sprintf("o%d", rng.IntN(6))
	for range 1 + rng.IntN(2) { // a change event has an order as it was and as it is
		o := &mutation.Order{Time: int64(rng.IntN(4)), Kind: []string{"", "view"}[rng.IntN(2)]}
		for _, item := range items {
			o.Lines = append(o.Lines, mutation.Line{Item: item, Quantity: float32(1+rng.IntN(5)) / 2})
		}
		o.Lines = mutation.SortLines(o.Lines)
		op := []mutation.Op{mutation.SetOrder, mutation.AddLines, mutation.AddLines, mutation.RemoveLines}[rng.IntN(4)]
		r = append(r, mutation.Mutation{Op: op, ID: id, Order: o})
	}
	return r
}

// fill sends n random records, whose links have kinds after all, some or none of them.
func fill(b *broker, rng *rand.Rand, n, nodes int) {
	kinds := []int{0, 0, n / 2, n}[rng.IntN(4)]
	for i := range n {
		topic, at, r := randomRecord(rng, nodes)
		if i < kinds && topic == viewsTopic {
			topic = edgesTopic
		}
		for k := range r {
			if i < kinds {
				r[k].Kind, r[k].Kinds = mutation.Kind{}, nil
			}
		}
		b.send(topic, at, r)
	}
}
