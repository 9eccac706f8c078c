package shard

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/stream/mutation"
)

// Links are found whether they lie in the sorted part, behind it or in the index, and come in order.
func TestPendingLinks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var links pendingLinks
	want := map[string]int64{}
	for step := range int64(2000) {
		other := fmt.Sprint(r.IntN(500))
		found := links.find(other)
		if _, ok := want[other]; ok != (found != nil) {
			t.Fatalf("step %d: link to %s is there: %t, found: %t", step, other, ok, found != nil)
		}
		if found == nil {
			found = links.add(other, &adjacency{})
		}
		found.in, want[other] = assertion{set: true, at: mutation.Version{Offset: step}}, step
		if r.IntN(50) > 0 {
			continue
		}
		var order []string
		for _, l := range links.inOrder() {
			if order = append(order, l.other); l.in.at.Offset != want[l.other] {
				t.Errorf("step %d: link to %s has offset %d, want %d", step, l.other, l.in.at.Offset, want[l.other])
			}
		}
		if all := slices.Sorted(maps.Keys(want)); !slices.Equal(order, all) {
			t.Fatalf("step %d: links to %v, want %v", step, order, all)
		}
	}
}

// The prefix of an adjacency key is found again, also if the owner has zero bytes.
func TestAdjacencyPrefixOf(t *testing.T) {
	for _, owner := range []string{"a", "", "a\x00b", "\x00", "\x00\x01", "a\x00\xff\x01"} {
		for _, other := range []string{"b", "\x00\x01", ""} {
			got, want := adjacencyPrefixOf(adjacencyKey(nil, owner, other)), adjacencyPrefix(nil, owner)
			if string(got) != string(want) {
				t.Errorf("owner %q, far end %q: prefix %q, want %q", owner, other, got, want)
			}
		}
	}
}
