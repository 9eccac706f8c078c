package shard

import (
	"testing"

	"giantstream/stream/mutation"
)

// supersededCount adds up the statements that lost.
type supersededCount struct {
	NopListener
	n *int64
}

func (c supersededCount) Superseded(statements int64) { *c.n += statements }

// TestSupersededStatementsAreCounted: losers count, winners and repetitions do not.
func TestSupersededStatementsAreCounted(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	opts := p.options(0)
	counted := int64(0)
	opts.Listener = supersededCount{n: &counted}
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	offset := int64(0)
	for i, step := range []struct {
		op         mutation.Op
		rank       uint8
		at         int64
		superseded int64
	}{
		{mutation.PutNode, 0, 10, 0},
		{mutation.PutNode, 0, 5, 1},
		{mutation.DeleteNode, 0, 5, 1},
		{mutation.PutNode, 0, 10, 0}, // a later offset
		{mutation.PutEdge, 1, 10, 0},
		{mutation.DeleteEdge, 1, 5, 1},
		{mutation.SetEdges, 1, 20, 0},
		{mutation.PutEdge, 1, 15, 1},
	} {
		counted = 0
		m := mutation.Mutation{Op: step.op, ID: "a", Text: "t",
			Version: mutation.Version{EventTime: step.at, Rank: step.rank, Offset: offset}}
		if step.op == mutation.PutEdge || step.op == mutation.DeleteEdge {
			m.Other = "b"
		}
		offset++
		batch := mutation.Batch{Mutations: []mutation.Mutation{m, m},
			Next: map[string]int64{nodesTopic: offset, edgesTopic: offset}}
		if err := s.Apply(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if want := 2 * step.superseded; counted != want {
			t.Errorf("step %d: %d statements superseded, want %d", i, counted, want)
		}
	}
}
