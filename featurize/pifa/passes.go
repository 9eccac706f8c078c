package pifa

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/internal/vector"
)

// passBlock is how many instances FromPass asks for at a time.
const passBlock = 4096

// FromPass is FromGraph for projected texts that do not fit into memory: rows
// writes those of the instances lo ≤ i < hi, and is called once for each range
// of instances, in ascending order. The sums are the same to the last bit.
func FromPass(dim int, y *sparse.Matrix, w Weighting, workers int, rows func(lo, hi int,
	out []float32) error) (*Sketch, error) {
	if dim < 1 {
		return nil, fmt.Errorf("pifa: %d dimensions", dim)
	}
	s := NewSketch(y.Cols, dim)
	buffer := make([]float32, passBlock*dim)
	workers = parallel.Workers(workers)
	// Each worker owns a range of labels and adds to those alone, instance
	// after instance, as FromGraph does.
	share := (y.Cols + workers - 1) / workers
	for lo := 0; lo < y.Rows; lo += passBlock {
		hi := min(lo+passBlock, y.Rows)
		if err := rows(lo, hi, buffer[:(hi-lo)*dim]); err != nil {
			return nil, err
		}
		parallel.ForEach(y.Cols, share, workers, func(_, _, first, end int) {
			for i := lo; i < hi; i++ {
				labels := y.Row(i).Index
				for _, l := range labels {
					if int(l) >= first && int(l) < end {
						s.add(int(l), w.WeightOf(float64(len(labels))), buffer[(i-lo)*dim:])
						s.count[l]++
					}
				}
			}
		})
	}
	return s, nil
}

// Normalize is Normalized without a copy: the sketch's sums become the
// embeddings, and the sketch must not be used any more.
func (s *Sketch) Normalize() []float32 {
	for l := range s.Len() {
		vector.Normalize(s.Sum(l))
	}
	return s.sums
}
