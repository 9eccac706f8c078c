// Package sparse holds the sparse vectors and matrices that featurization
// passes around: float32 values, int32 column indices, compressed rows.
package sparse

// Vector is a sparse row: ascending, distinct indices and their values.
type Vector struct {
	Index []int32
	Value []float32
}

// Matrix is a row-compressed (CSR) matrix. Row i occupies
// Index[Start[i]:Start[i+1]] and the same range of Value; indices ascend
// within a row. A nil Value means that every stored entry is 1 (an adjacency).
type Matrix struct {
	Rows, Cols int
	Start      []int64 // len Rows+1
	Index      []int32
	Value      []float32
}

// Row returns row i without copying. Value is nil for an adjacency.
func (m *Matrix) Row(i int) Vector {
	a, b := m.Start[i], m.Start[i+1]
	v := Vector{Index: m.Index[a:b]}
	if m.Value != nil {
		v.Value = m.Value[a:b]
	}
	return v
}

// Weight returns the value of the k-th entry: 1 of an adjacency.
func (v Vector) Weight(k int) float32 {
	if v.Value == nil {
		return 1
	}
	return v.Value[k]
}

// Sum returns the sum of the values: the number of entries of an adjacency.
func (v Vector) Sum() float64 {
	if v.Value == nil {
		return float64(len(v.Index))
	}
	var sum float64
	for _, x := range v.Value {
		sum += float64(x)
	}
	return sum
}

// Effective returns how many entries of equal values say as much as these: (Σv)²/Σv². It does not depend on the scale
// of the values.
func (v Vector) Effective() float64 {
	if v.Value == nil {
		return float64(len(v.Index))
	}
	var squares float64
	for _, x := range v.Value {
		squares += float64(x) * float64(x)
	}
	sum := v.Sum()
	return sum * sum / squares
}

// Size returns the numbers of rows and columns.
func (m *Matrix) Size() (rows, cols int) { return m.Rows, m.Cols }

// NNZ returns the number of stored entries.
func (m *Matrix) NNZ() int64 { return m.Start[m.Rows] }

// Append adds a row at the end.
func (m *Matrix) Append(v Vector) {
	if m.Start == nil {
		m.Start = []int64{0}
	}
	m.Index = append(m.Index, v.Index...)
	m.Value = append(m.Value, v.Value...)
	m.Start = append(m.Start, int64(len(m.Index)))
	m.Rows++
}

// Transpose returns the transposed matrix; nil Value stays nil.
func (m *Matrix) Transpose() *Matrix {
	t := &Matrix{Rows: m.Cols, Cols: m.Rows, Start: make([]int64, m.Cols+1), Index: make([]int32, len(m.Index))}
	if m.Value != nil {
		t.Value = make([]float32, len(m.Value))
	}
	for _, j := range m.Index {
		t.Start[j+1]++
	}
	for j := range m.Cols {
		t.Start[j+1] += t.Start[j]
	}
	next := append([]int64(nil), t.Start[:m.Cols]...)
	for i := range m.Rows {
		row := m.Row(i)
		for k, j := range row.Index {
			at := next[j]
			next[j]++
			t.Index[at] = int32(i)
			if t.Value != nil {
				t.Value[at] = row.Value[k]
			}
		}
	}
	return t
}
