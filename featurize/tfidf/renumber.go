package tfidf

import (
	"slices"

	"giantstream/featurize/sparse"
)

// placeOf returns the place of a feature among the keys, given its number.
func (m *Model) placeOf(column int) int {
	if m.column == nil {
		return column
	}
	return int(m.place[column])
}

// renumberRow gives the entries of a vector their features' numbers.
func (m *Model) renumberRow(v sparse.Vector) {
	for k, id := range v.Index {
		v.Index[k] = m.column[id]
	}
	sortByIndex(v)
}

// sortByIndex sorts the entries of a vector.
func sortByIndex(v sparse.Vector) {
	order := make([]int, len(v.Index))
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int { return int(v.Index[a]) - int(v.Index[b]) })
	index, value := slices.Clone(v.Index), slices.Clone(v.Value)
	for to, from := range order {
		v.Index[to], v.Value[to] = index[from], value[from]
	}
}

// invert fills place, and says whether column is a permutation.
func (m *Model) invert() bool {
	if m.column == nil {
		return true
	}
	m.place = make([]int32, len(m.column))
	for i := range m.place {
		m.place[i] = -1
	}
	for id, c := range m.column {
		if c < 0 || int(c) >= len(m.place) || m.place[c] >= 0 {
			return false
		}
		m.place[c] = int32(id)
	}
	return len(m.column) == len(m.keys)
}
