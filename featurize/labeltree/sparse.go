package labeltree

import (
	"slices"

	"giantstream/featurize/internal/portable"
	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
)

// sparseRows are the rows of a sparse matrix.
type sparseRows struct {
	*sparse.Matrix
	alone []float32 // by row, see lone; nil for none
	slot  []int32   // scratch of compact, as long as the matrix it compacts is wide
}

func (s *sparseRows) Len() int              { return s.Rows }
func (s *sparseRows) width() int            { return s.Cols }
func (s *sparseRows) isZero(i int32) bool   { return allZero(s.Row(int(i)).Value) }
func (s *sparseRows) isFinite(i int32) bool { return allFinite(s.Row(int(i)).Value) }

func (s *sparseRows) lone(i int32) float32 {
	if s.alone == nil {
		return 0
	}
	return s.alone[i]
}

// accumulate gives every worker columns of its own, so that each column adds
// up in the order of members.
func (s *sparseRows) accumulate(members []int32, weight []int8, sum []float32, workers int) {
	bounds := s.columnBounds(members, workers)
	parallel.ForEach(workers, 1, workers, func(_, w, _, _ int) {
		for k, m := range members {
			if weight[k] == 0 {
				continue
			}
			index, value := s.columns(m, bounds, w)
			if weight[k] > 0 {
				for k, j := range index {
					sum[j] += value[k]
				}
			} else {
				for k, j := range index {
					sum[j] -= value[k]
				}
			}
		}
	})
}

// columnBounds divides the columns among workers about evenly by the entries
// of some of the members.
func (s *sparseRows) columnBounds(members []int32, workers int) []int32 {
	bounds := make([]int32, workers+1)
	bounds[workers] = int32(s.Cols)
	if workers == 1 {
		return bounds
	}
	var sample []int32
	for k := 0; k < len(members); k += 1 + len(members)/64 {
		sample = append(sample, s.Row(int(members[k])).Index...)
	}
	slices.Sort(sample)
	for w := 1; w < workers; w++ {
		if len(sample) > 0 {
			bounds[w] = sample[w*len(sample)/workers]
		}
	}
	return bounds
}

// columns returns the entries of row m in the columns of worker w.
func (s *sparseRows) columns(m int32, bounds []int32, w int) (index []int32, value []float32) {
	row := s.Row(int(m))
	if len(bounds) == 2 {
		return row.Index, row.Value[:len(row.Index)]
	}
	lo, _ := slices.BinarySearch(row.Index, bounds[w])
	hi, _ := slices.BinarySearch(row.Index, bounds[w+1])
	return row.Index[lo:hi], row.Value[lo:hi]
}

func (s *sparseRows) dots(members []int32, v []float32, out []float32, workers int) {
	parallel.ForEach(len(members), dotBlock, workers, func(_, _, lo, hi int) {
		for k, m := range members[lo:hi] {
			row := s.Row(int(m))
			out[lo+k] = portable.SparseDot(row.Index, row.Value, v)
		}
	})
}

func (s *sparseRows) reset(members []int32, sum []float32) {
	var entries int64
	for _, m := range members {
		entries += s.Start[m+1] - s.Start[m]
	}
	if entries > int64(len(sum))/8 { // in order is faster than here and there
		clear(sum)
		return
	}
	for _, m := range members {
		for _, j := range s.Row(int(m)).Index {
			sum[j] = 0
		}
	}
}

// compact leaves out the columns without entries, and those of a single entry,
// which only add to the product of a row with itself. Both are most of the
// columns of a small cluster; what remains fits into the processor's caches.
func (s *sparseRows) compact(members []int32, last points) (points, bool) {
	c, ok := last.(*sparseRows)
	if !ok {
		c = &sparseRows{Matrix: &sparse.Matrix{}, slot: make([]int32, s.Cols)}
	}
	// slot[j]: how many entries, up to two; then the new column plus 2.
	entries, single := 0, 0
	for _, m := range members {
		row := s.Row(int(m)).Index
		entries += len(row)
		for _, j := range row {
			switch c.slot[j] {
			case 0:
				c.slot[j] = 1
				single++
			case 1:
				c.slot[j] = 2
				single--
			}
		}
	}
	c.Rows, c.Cols = len(members), 0
	c.Start, c.alone = resize(c.Start, len(members)+1), resize(c.alone, len(members))
	c.Index, c.Value = resize(c.Index, entries-single), resize(c.Value, entries-single)
	n := 0
	for k, m := range members {
		row := s.Row(int(m))
		c.Start[k] = int64(n)
		var alone float32
		for at, j := range row.Index {
			switch c.slot[j] {
			case 1:
				alone += float32(row.Value[at] * row.Value[at]) // as in package portable
				continue
			case 2:
				c.Cols++
				c.slot[j] = int32(c.Cols) + 2
			}
			c.Index[n], c.Value[n] = c.slot[j]-3, row.Value[at]
			n++
		}
		c.alone[k] = alone
	}
	c.Start[len(members)] = int64(n)
	for _, m := range members {
		for _, j := range s.Row(int(m)).Index {
			c.slot[j] = 0
		}
	}
	return c, true
}
