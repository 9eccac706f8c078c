package xrlinear

import (
	"math"
	"slices"

	"giantstream/featurize/sparse"
)

// local is the instances of one parent, with the columns numbered anew.
type local struct {
	rows []int32 // the instances, ascending
	// Columns that at least two of them have, the most frequent first, so that
	// what is touched all the time lies together: row k occupies
	// index[start[k]:start[k+1]]; cols gives a column's own number.
	start []int64
	index []int32
	value []float32
	cols  []int32
	// Columns that row k alone has, under their own numbers.
	ownStart []int64
	ownIndex []int32
	ownValue []float32
	// ownSquare is the sum of their squares, ownMost the largest of them.
	ownSquare, ownMost []float32
	// square is ‖x‖² without them, with the bias.
	square []float32
}

func (l *local) n() int { return len(l.rows) }

// localizer makes locals; one per goroutine.
type localizer struct {
	count  []int32 // by column: how many of the rows have it
	number []int32
}

func newLocalizer(cols int) *localizer {
	return &localizer{count: make([]int32, cols), number: make([]int32, cols)}
}

// take makes the local matrix of the given rows of x.
func (z *localizer) take(x *sparse.Matrix, rows []int32) *local {
	l := &local{rows: rows, start: make([]int64, 1, len(rows)+1), ownStart: make([]int64, 1, len(rows)+1)}
	var touched []int32
	for _, i := range rows {
		for _, j := range x.Row(int(i)).Index {
			if z.count[j]++; z.count[j] == 2 {
				l.cols = append(l.cols, j)
			} else if z.count[j] == 1 {
				touched = append(touched, j)
			}
		}
	}
	shared := z.byFrequency(l)
	l.index, l.value = make([]int32, 0, shared), make([]float32, 0, shared)
	for _, i := range rows {
		row := x.Row(int(i))
		square, own, most := float64(1), float64(0), float32(0)
		for k, j := range row.Index {
			v := row.Value[k]
			if z.count[j] > 1 {
				l.index, l.value = append(l.index, z.number[j]), append(l.value, v)
				square += float64(v) * float64(v)
				continue
			}
			l.ownIndex, l.ownValue = append(l.ownIndex, j), append(l.ownValue, v)
			own += float64(v) * float64(v)
			most = max(most, float32(math.Abs(float64(v))))
		}
		l.start, l.ownStart = append(l.start, int64(len(l.index))), append(l.ownStart, int64(len(l.ownIndex)))
		l.square, l.ownSquare, l.ownMost = append(l.square, float32(square)), append(l.ownSquare, float32(own)), append(l.ownMost, most)
	}
	for _, j := range touched {
		z.count[j] = 0
	}
	return l
}

// byFrequency numbers the columns, the most frequent first, those that are
// equally so in order of appearance. It returns the number of entries.
func (z *localizer) byFrequency(l *local) (entries int64) {
	next := make([]int32, l.n()+2) // where the next column with at most so many entries goes
	for _, j := range l.cols {
		next[z.count[j]]++
	}
	at := int32(0)
	for n := l.n(); n >= 0; n-- {
		entries += int64(n) * int64(next[n])
		next[n], at = at, at+next[n]
	}
	cols := make([]int32, len(l.cols))
	for _, j := range l.cols {
		k := next[z.count[j]]
		next[z.count[j]]++
		cols[k], z.number[j] = j, k
	}
	l.cols = cols
	return entries
}

// dot is ⟨w, x_k⟩ without bias.
func (l *local) dot(k int32, w []float32) float32 {
	a, b := l.start[k], l.start[k+1]
	index, value := l.index[a:b], l.value[a:b]
	value = value[:len(index)]
	var s0, s1, s2, s3 float32
	j := 0
	for ; j+3 < len(index); j += 4 {
		s0 += w[index[j]] * value[j]
		s1 += w[index[j+1]] * value[j+1]
		s2 += w[index[j+2]] * value[j+2]
		s3 += w[index[j+3]] * value[j+3]
	}
	for ; j < len(index); j++ {
		s0 += w[index[j]] * value[j]
	}
	return (s0 + s1) + (s2 + s3)
}

// axpy adds d·x_k to w.
func (l *local) axpy(k int32, d float32, w []float32) {
	a, b := l.start[k], l.start[k+1]
	index, value := l.index[a:b], l.value[a:b]
	value = value[:len(index)]
	for j, c := range index {
		w[c] += d * value[j]
	}
}

// gram is the matrix of the products of the rows, bias included, n×n.
func (l *local) gram(k []float32) []float32 {
	n := l.n()
	k = slices.Grow(k[:0], n*n)[:n*n]
	for i := range k {
		k[i] = 1
	}
	// By columns: Σ over columns of the square of their lengths, instead of
	// n²/2 products of whole rows.
	next := make([]int32, len(l.cols)+1)
	for _, c := range l.index {
		next[c+1]++
	}
	for c := range l.cols {
		next[c+1] += next[c]
	}
	rows, values := make([]int32, len(l.index)), make([]float32, len(l.index))
	for i := range int32(n) {
		for at := l.start[i]; at < l.start[i+1]; at++ {
			c := l.index[at]
			rows[next[c]], values[next[c]] = i, l.value[at]
			next[c]++
		}
	}
	from := int32(0)
	for c := range l.cols {
		to := next[c]
		for a := from; a < to; a++ {
			row, v := k[int(rows[a])*n:int(rows[a])*n+n], values[a]
			for b := a; b < to; b++ {
				row[rows[b]] += v * values[b]
			}
		}
		from = to
	}
	for i := range n {
		for j := i + 1; j < n; j++ {
			k[j*n+i] = k[i*n+j]
		}
	}
	return k
}
