package live_test

import (
	"fmt"
	"log"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/live"
	"giantstream/featurize/pifa"
	"giantstream/featurize/sparse"
)

// A node arrives in a graph of four nodes, with a text and an edge.
func Example() {
	// Nodes 0 and 1 are neighbours with one text, 2 and 3 with another.
	texts := []float32{1, 0, 1, 0, 0, 1, 0, 1} // 4 × 2
	adjacency := &sparse.Matrix{Cols: 4}
	for _, neighbour := range []int32{1, 0, 3, 2} {
		adjacency.Append(sparse.Vector{Index: []int32{neighbour}})
	}
	features, err := labeltree.Dense(texts, 2)
	if err != nil {
		log.Fatal(err)
	}
	tree, err := labeltree.Build(features, labeltree.Options{Levels: []int{2}})
	if err != nil {
		log.Fatal(err)
	}
	g, err := live.NewGraph(tree, texts, 2, adjacency, pifa.Sum, live.Options{MaxLeafSize: 4})
	if err != nil {
		log.Fatal(err)
	}
	n := g.Grow(1)
	g.SetText(n, []float32{1, 0})
	g.AddEdge(n, 0) // an undirected edge is two
	g.AddEdge(0, n)
	_, counts := labeltree.Targets(g.Tree(), g.Labels(n))
	fmt.Println(g.Tree().Cluster(0, int(n)) == g.Tree().Cluster(0, 0), counts)
	// Output: true [[1]]
}
