package graphtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"giantstream/sink/rows"
)

// Rows returns n nodes of k topics: texts of words of their own topic, links to nodes of the same topic. Node
// i is of topic i mod k.
func Rows(n, k int) []rows.Row {
	r := rand.New(rand.NewPCG(9, 9))
	nodes := make([]rows.Row, n)
	links := make([]map[string]bool, n)
	id := func(i int) string { return fmt.Sprintf("node-%04d", i) }
	for i := range nodes {
		links[i] = map[string]bool{}
	}
	for i := range nodes {
		nodes[i] = rows.Row{NodeID: id(i), EventTime: 1}
		for range 12 {
			nodes[i].Text += fmt.Sprintf("the topic%dword%d ", i%k, r.IntN(30))
		}
		for range 4 {
			if j := r.IntN(n/k)*k + i%k; j != i {
				links[i][id(j)], links[j][id(i)] = true, true
			}
		}
	}
	for i := range nodes {
		nodes[i].Labels = slices.Sorted(maps.Keys(links[i]))
	}
	return nodes
}
