package vectordbtest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
)

// remaining: any process can ask what a database has of some nodes, and takes nothing over from the one that follows.
func remaining(t *testing.T, target Target) {
	target.Wire.calm()
	ask := func(nodes ...string) map[string]int {
		t.Helper()
		other := target.Open()
		defer other.Close() //nolint:errcheck // read only
		found, err := other.Remaining(t.Context(), nodes)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := ask("n1"); len(found) > 0 {
		t.Errorf("before anything is there: %v", found)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	topic := NewTopic(rnd, 2, true, nil)
	topic.steady = true
	for range 20 {
		topic.Grow()
	}
	topic.Settle()
	p := start(t, topic, target, rnd, 0, 0)
	p.finish(t, topic, rnd, target)
	live := slices.Sorted(maps.Keys(target.Rows()))
	gone := live[:len(live)/2]
	sum := func(of map[string]int) (n int) {
		for place, in := range of {
			if place != target.Kept {
				n += in
			}
		}
		return n
	}
	if found := ask(append(live, "never", "\x00")...); sum(found) != len(live) {
		t.Errorf("%v of %d nodes", found, len(live))
	}
	if found := ask("never"); len(found) > 0 {
		t.Errorf("of a node that never was: %v", found)
	}
	for _, id := range gone {
		topic.send(vectordb.Record{Record: embedding.Record{NodeID: id, Generation: topic.target, Deleted: true}})
	}
	p.finish(t, topic, rnd, target) // it has not been replaced
	found := ask(gone...)
	if sum(found) > 0 || (target.Kept != "") != (found[target.Kept] == len(gone)) {
		t.Errorf("of %d deleted nodes: %v", len(gone), found)
	}
	if found := ask(live...); sum(found) != len(live)-len(gone) {
		t.Errorf("%v of %d nodes that stay", found, len(live)-len(gone))
	}
	if err := vectordb.New(options(topic, target.Open())).Open(t.Context()); err != nil {
		t.Error(err)
	}
}
