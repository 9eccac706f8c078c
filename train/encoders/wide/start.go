package wide

import (
	"fmt"

	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/numeric"
)

// startSample bounds how many texts the table's scale is taken from.
const startSample = 4096

// Start returns the table that training begins with: a vector of dimension dim for each of the at
// most rows n-grams that are in most rows of x (Ψ of the texts), from a linear solution (Rank×from,
// row-major; package linear), of which the first min(from, dim) columns are used. The h of texts of
// x have length 1 on average. Without weights, the first numbers of the projection take the place
// of the solution.
func Start(x bag.Features, p train.Projection, weights []float32, from, dim, rows, workers int) (*bag.Model, error) {
	rank := p.Dim()
	if dim < 1 {
		return nil, fmt.Errorf("wide: a table of dimension %d", dim)
	}
	padded := make([]float32, rank*dim)
	switch {
	case weights == nil:
		for k := range min(rank, dim) {
			padded[k*dim+k] = 1
		}
	case len(weights) != rank*from:
		return nil, fmt.Errorf("wide: %d weights are not a linear solution from %d to %d dimensions", len(weights),
			rank, from)
	default:
		for k := range rank {
			copy(padded[k*dim:(k+1)*dim], weights[k*from:(k+1)*from])
		}
	}
	m, err := bag.Start(x, p, padded, dim, rows, workers)
	if err != nil {
		return nil, err
	}
	Scale(m, x, 1, workers)
	return m, nil
}

// Scale multiplies a table's vectors so that the h of texts of x have the given length on
// average.
func Scale(m *bag.Model, x bag.Features, length float32, workers int) {
	if mean := meanLength(m, x, workers); mean > 0 {
		for i := range m.Vectors() {
			m.Vectors()[i] *= length / mean
		}
	}
}

// meanLength is the mean length of h over texts spread evenly over x.
func meanLength(m *bag.Model, x bag.Features, workers int) float32 {
	n, _ := x.Size()
	step := max(1, n/startSample)
	lengths := make([]float32, (n+step-1)/step)
	parallel.Each(len(lengths), 16, workers, func(_, _, lo, hi int) {
		h := make([]float32, m.Dim())
		for i := lo; i < hi; i++ {
			clear(h)
			m.Add(x.Row(i*step), h)
			lengths[i] = numeric.Normalize(h)
		}
	})
	var sum float32
	for _, l := range lengths {
		sum += l
	}
	return sum / float32(max(1, len(lengths)))
}
