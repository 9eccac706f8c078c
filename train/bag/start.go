package bag

import (
	"fmt"

	"giantstream/train"
)

// Start returns the bag that training would start from at a linear solution
// (Rank×dim, see Data): a vector for each of the at most maxRows n-grams that
// are in most rows of x. With no weights, embeddings are the first dim numbers of
// the projection, as those of package lsa but for the n-grams left out.
func Start(x Features, p train.Projection, weights []float32, dim, maxRows, workers int) (*Model, error) {
	rank := p.Dim()
	if weights == nil {
		if dim > rank {
			return nil, fmt.Errorf("bag: %d dimensions of a projection that has %d", dim, rank)
		}
		weights = make([]float32, rank*dim)
		for k := range dim {
			weights[k*dim+k] = 1
		}
	}
	if dim < 1 || len(weights) != rank*dim || maxRows < 1 {
		return nil, fmt.Errorf("bag: %d weights are not a linear solution from %d to %d dimensions for %d rows", len(weights), rank, dim, maxRows)
	}
	_, cols := x.Size()
	t := newTable(chooseFeatures(x, maxRows), cols, dim)
	t.linearStart(p, weights, workers)
	return &Model{t}, nil
}
