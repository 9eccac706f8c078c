package heads_test

import (
	"context"
	"fmt"
	"log"

	"giantstream/featurize/sparse"
	"giantstream/train/generation/heads"
)

// A logistic regression on smoothed embeddings learns the classes of half of the nodes.
func Example() {
	d := heads.Data{Dim: 2, Neighbours: &sparse.Matrix{Cols: 40}}
	for i := range 40 {
		class := i % 2
		d.Classes = append(d.Classes, []string{"tool", "toy"}[class])
		d.Vectors = append(d.Vectors, float32(class), float32(1-class))
		d.Neighbours.Append(sparse.Vector{Index: []int32{int32((i + 2) % 40)}})
	}
	split, err := heads.ByRate(d.Classes, 0.5, 0.25, 1)
	if err != nil {
		log.Fatal(err)
	}
	r, err := heads.Train(context.Background(), heads.SGC, d, split, heads.Options{Seed: 1}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Accuracy)
	// Output: 1
}
