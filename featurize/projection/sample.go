package projection

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"giantstream/featurize/sparse"
)

// sampleRows returns the sorted numbers of a seeded sample of the rows that
// have entries; all of them if they are no more than size.
func sampleRows(x *sparse.Matrix, size int, seed uint64) []int32 {
	var rows []int32
	for i := range x.Rows {
		if x.Start[i+1] > x.Start[i] {
			rows = append(rows, int32(i))
		}
	}
	if len(rows) > size {
		r := rand.New(rand.NewPCG(seed, 'S'))
		for i := range size { // the first steps of a Fisher-Yates shuffle
			j := i + r.IntN(len(rows)-i)
			rows[i], rows[j] = rows[j], rows[i]
		}
		rows = rows[:size]
		slices.Sort(rows)
	}
	return rows
}

// fewRows: of fewer rows, features of a single row count too; without them, some of a handful of
// texts would have nothing.
const fewRows = 32

// keepFeatures returns the sorted features that a projection of these rows
// maps: of those that at least two rows share, the limit with the largest sum
// of squares. A feature of a single row adds a direction that no other text has.
func keepFeatures(x *sparse.Matrix, rows []int32, limit int) []int32 {
	count := make([]int32, x.Cols)
	energy := make([]float64, x.Cols)
	for _, i := range rows {
		row := x.Row(int(i))
		for k, j := range row.Index {
			count[j]++
			energy[j] += float64(row.Value[k]) * float64(row.Value[k])
		}
	}
	atLeast := int32(2)
	if len(rows) < fewRows {
		atLeast = 1
	}
	var keep []int32
	for j, c := range count {
		if c >= atLeast {
			keep = append(keep, int32(j))
		}
	}
	if len(keep) > limit {
		slices.SortFunc(keep, func(a, b int32) int {
			return cmp.Or(cmp.Compare(energy[b], energy[a]), cmp.Compare(a, b))
		})
		keep = keep[:limit]
		slices.Sort(keep)
	}
	return keep
}

// take returns the sub-matrix of the rows, with columns renumbered by slot
// (those with slot < 0 left out).
func take(x *sparse.Matrix, rows, slot []int32, cols int) *sparse.Matrix {
	a := &sparse.Matrix{Cols: cols, Start: []int64{0}}
	for _, i := range rows {
		row := x.Row(int(i))
		for k, j := range row.Index {
			if slot[j] >= 0 {
				a.Index = append(a.Index, slot[j])
				a.Value = append(a.Value, row.Value[k])
			}
		}
		a.Start = append(a.Start, int64(len(a.Index)))
		a.Rows++
	}
	return a
}
