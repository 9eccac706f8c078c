package pifa

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/internal/vector"
)

// Sketch holds for each of n labels the sum of the projected features of its
// instances, not normalized. It is not safe for concurrent use.
type Sketch struct {
	dim   int
	sums  []float32 // n × dim
	count []int32   // instances per label
}

// NewSketch returns the sketch of n labels without instances.
func NewSketch(n, dim int) *Sketch {
	return &Sketch{dim: dim, sums: make([]float32, n*dim), count: make([]int32, n)}
}

// FromGraph returns the sketch of a whole graph: projected holds the
// projected texts of the instances (n × dim), y their labels (workers ≤ 0:
// one per CPU).
func FromGraph(projected []float32, dim int, y *sparse.Matrix, w Weighting, workers int) (*Sketch, error) {
	if dim < 1 || len(projected) != y.Rows*dim {
		return nil, fmt.Errorf("pifa: %d projected values are not %d instances of %d dimensions",
			len(projected), y.Rows, dim)
	}
	s := NewSketch(y.Cols, dim)
	instances := y.Transpose()
	parallel.ForEach(y.Cols, 64, workers, func(_, _, lo, hi int) {
		for l := lo; l < hi; l++ {
			for _, i := range instances.Row(l).Index {
				s.add(l, w.WeightOf(float64(y.Start[i+1]-y.Start[i])), projected[int(i)*dim:])
				s.count[l]++
			}
		}
	})
	return s, nil
}

// Len returns the number of labels.
func (s *Sketch) Len() int { return len(s.count) }

// Instances returns how many instances the label has.
func (s *Sketch) Instances(label int) int { return int(s.count[label]) }

// Sum returns the sum of the label. It is valid until the next update.
func (s *Sketch) Sum(label int) []float32 { return s.sums[label*s.dim : (label+1)*s.dim] }

// AddWeighted adds an instance with that sketch, times a weight, to the label.
func (s *Sketch) AddWeighted(label int, weight float32, sketch []float32) {
	s.add(label, weight, sketch)
	s.count[label]++
}

func (s *Sketch) add(label int, weight float32, sketch []float32) {
	blas32.Axpy(weight, blas32.Vector{N: s.dim, Inc: 1, Data: sketch[:s.dim]},
		blas32.Vector{N: s.dim, Inc: 1, Data: s.Sum(label)})
}

// Normalized returns the embeddings of all labels, n × dim row-major, each of
// length 1, or zero for a label without instances.
func (s *Sketch) Normalized() []float32 { return normalizeRows(s.sums, s.dim) }

// normalizeRows returns a copy with rows of length 1; zero rows stay zero.
func normalizeRows(rows []float32, dim int) []float32 {
	out := slices.Clone(rows)
	for at := 0; at < len(rows); at += dim {
		vector.Normalize(out[at : at+dim])
	}
	return out
}
