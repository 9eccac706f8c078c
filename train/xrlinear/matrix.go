package xrlinear

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

func (m *matrix) own(k int32) float32 {
	if m.ownSquare == nil {
		return 0
	}
	return m.ownSquare[k]
}
