package eval_test

import (
	"fmt"
	"log"

	"giantstream/train/generation/eval"
	"giantstream/train/internal/graphtest"
)

// Some edges are hidden before anything is fitted, and embeddings have to predict them.
func Example() {
	graph := graphtest.Topics(200, 4, 10, 1)
	known, hidden := eval.Split(graph, 0.10, 1) // before PIFA, tree and targets
	// A stage would fit and train on known. Here the embedding of a node is its topic.
	const dim = 4
	embeddings := make([]float32, graph.Len()*dim)
	for i := range graph.Len() {
		embeddings[i*dim+i%dim] = 1
	}
	m, err := eval.Links(embeddings, dim, known, hidden, eval.LinkOptions{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Edges == len(hidden), m.AUC > 0)
	// Output: true true
}
