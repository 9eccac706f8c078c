package xrlinear

import (
	"math"

	"giantstream/featurize/sparse"
)

// local is the instances of one parent, with columns numbered from zero.
type local struct {
	rows []int32 // the instances, ascending
	// The columns that at least two of the instances have, the most frequent first, so that columns
	// in frequent use lie together.
	matrix
	// feature is what a column of matrix is in x; -1 for column 0, the bias.
	feature []int32
	// Columns that row k alone has, as in x: ownIndex[ownStart[k]:ownStart[k+1]].
	ownStart []int64
	ownIndex []int32
	ownValue []float32
	ownMost  []float32 // by row, the largest of ownValue
}

// name returns the feature of a column, of matrix or, from cols on, of
// ownIndex.
func (l *local) name(column int) int32 {
	if column < l.cols {
		return l.feature[column]
	}
	return l.ownIndex[column-l.cols]
}

// localizer makes locals; one per goroutine.
type localizer struct{ columns []column }

// column is how many of the rows have a column, and its new number: 0 if only one row has it.
type column struct{ count, number int32 }

func newLocalizer(cols int) *localizer {
	return &localizer{make([]column, cols)}
}

// take makes the local matrix of the given rows of x.
func (z *localizer) take(x *sparse.Matrix, rows []int32) *local {
	n := len(rows)
	l := &local{rows: rows, ownStart: make([]int64, 1, n+1), ownMost: make([]float32, 0, n)}
	l.start, l.square, l.ownSquare = make([]int64, 1, n+1), make([]float32, 0, n), make([]float32, 0, n)
	var touched, shared []int32
	total := 0
	for _, i := range rows {
		row := x.Row(int(i))
		total += len(row.Index)
		for _, j := range row.Index {
			c := &z.columns[j]
			if c.count++; c.count == 2 {
				shared = append(shared, j)
			} else if c.count == 1 {
				touched = append(touched, j)
			}
		}
	}
	own := len(touched) - len(shared)
	l.feature = z.byFrequency(shared, n)
	l.cols = len(l.feature)
	l.index, l.value = make([]int32, 0, total-own+n), make([]float32, 0, total-own+n)
	l.ownIndex, l.ownValue = make([]int32, 0, own), make([]float32, 0, own)
	for _, i := range rows {
		row := x.Row(int(i))
		square, own, most := float64(1), float64(0), float32(0)
		l.index, l.value = append(l.index, 0), append(l.value, 1)
		for k, j := range row.Index {
			v := row.Value[k]
			if number := z.columns[j].number; number > 0 {
				l.index, l.value = append(l.index, number), append(l.value, v)
				square += float64(v) * float64(v)
				continue
			}
			l.ownIndex, l.ownValue = append(l.ownIndex, j), append(l.ownValue, v)
			own += float64(v) * float64(v)
			most = max(most, float32(math.Abs(float64(v))))
		}
		l.start, l.ownStart = append(l.start, int64(len(l.index))), append(l.ownStart, int64(len(l.ownIndex)))
		l.square, l.ownSquare, l.ownMost = append(l.square, float32(square)), append(l.ownSquare, float32(own)),
			append(l.ownMost, most)
	}
	for _, j := range touched {
		z.columns[j] = column{}
	}
	return l
}

// byFrequency numbers the columns that rows share, from 1, the most frequent first and equally
// frequent ones in order of appearance. It returns their numbers in x.
func (z *localizer) byFrequency(shared []int32, rows int) []int32 {
	next := make([]int32, rows+1) // by number of entries: where the next such column goes
	for _, j := range shared {
		next[z.columns[j].count]++
	}
	at := int32(1)
	for n := rows; n >= 0; n-- {
		next[n], at = at, at+next[n]
	}
	feature := make([]int32, at)
	feature[0] = -1
	for _, j := range shared {
		c := &z.columns[j]
		c.number = next[c.count]
		next[c.count]++
		feature[c.number] = j
	}
	return feature
}

// matrix is the rows of a problem, the bias among their features.
type matrix struct {
	cols int
	// Row k occupies index[start[k]:start[k+1]] and the same range of value.
	// Without start all rows have the features in index, and follow each other in value.
	start []int64
	index []int32
	value []float32
	// square is ‖x_k‖² of these; ownSquare is that of what no other row has and is
	// therefore left out, nil if that is nothing.
	square, ownSquare []float32
}

func (m *matrix) n() int { return len(m.square) }

func (m *matrix) row(k int32) (index []int32, value []float32) {
	if m.start == nil {
		return m.index, m.value[int(k)*m.cols : (int(k)+1)*m.cols]
	}
	a, b := m.start[k], m.start[k+1]
	return m.index[a:b], m.value[a:b]
}

func (m *matrix) ownSquareOf(k int32) float32 {
	if m.ownSquare == nil {
		return 0
	}
	return m.ownSquare[k]
}
