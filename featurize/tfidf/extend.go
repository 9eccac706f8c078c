package tfidf

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"giantstream/featurize/sparse"
)

// Extend returns the model with the features of fresh that it lacks. Its own features keep their numbers and weights;
// the new ones get the next numbers, at most of them, those of the lowest weight: the most frequent. Fresh must be
// fitted to a part of docs texts, and split texts the same way.
func (m *Model) Extend(fresh *Model, docs, most int) (*Model, error) {
	if fresh.profile != m.profile {
		return nil, errors.New("tfidf: a model can only be extended by one of the same profile")
	}
	words, of, ofFresh := union(m.words, fresh.words)
	out := &Model{profile: m.profile, docs: max(docs, m.docs), words: words}
	// What is rare among the texts of fresh is as much rarer among all as these are more.
	rarer := float32(math.Log(float64(max(1, docs)) / float64(max(1, fresh.docs))))
	chosen := m.lacks(fresh, of, ofFresh, most)
	next := int32(m.Dim())
	for p := Word1; p < numParts; p++ {
		for i, key := range m.part(p) {
			id := m.first[p] + i
			out.keys, out.idf = append(out.keys, renumber(p, key, of)), append(out.idf, m.idf[id])
			out.column = append(out.column, int32(m.columnOf(id)))
		}
		for _, id := range chosen[p] {
			out.keys = append(out.keys, renumber(p, fresh.keys[id], ofFresh))
			out.idf = append(out.idf, fresh.idf[id]+rarer)
			out.column = append(out.column, next)
			next++
		}
		out.first[p+1] = len(out.keys)
	}
	out.index()
	return out, nil
}

// lacks returns the features of fresh that m has not, by part and ascending.
func (m *Model) lacks(fresh *Model, of, ofFresh []int32, most int) (chosen [numParts][]int) {
	var all []int
	for p := Word1; p < numParts; p++ {
		has := make(map[uint64]struct{}, len(m.part(p)))
		for _, key := range m.part(p) {
			has[renumber(p, key, of)] = struct{}{}
		}
		for i, key := range fresh.part(p) {
			if _, known := has[renumber(p, key, ofFresh)]; !known {
				all = append(all, fresh.first[p]+i)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		switch x, y := fresh.idf[a], fresh.idf[b]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return a - b
	})
	all = all[:min(len(all), most)]
	slices.Sort(all)
	for _, id := range all {
		p := fresh.partAt(id)
		chosen[p] = append(chosen[p], id)
	}
	return chosen
}

// renumber returns a key of a part by other numbers of the words.
func renumber(p Part, key uint64, of []int32) uint64 {
	switch p {
	case Word1:
		return uint64(of[key])
	case Word2:
		return pairKey(of[key>>32], of[uint32(key)])
	}
	return key
}

// union returns the words of two tables in byte order, and the number of each word of both among them.
func union(a, b *wordTable) (all *wordTable, ofA, ofB []int32) {
	all, ofA, ofB = &wordTable{start: []int64{0}}, make([]int32, a.len()), make([]int32, b.len())
	for i, j := 0, 0; i < a.len() || j < b.len(); {
		var order int
		switch {
		case i == a.len():
			order = 1
		case j == b.len():
			order = -1
		default:
			order = bytes.Compare(a.word(i), b.word(j))
		}
		id := int32(all.len())
		if order <= 0 {
			all.append(a.word(i))
		} else {
			all.append(b.word(j))
		}
		if order <= 0 {
			ofA[i] = id
			i++
		}
		if order >= 0 {
			ofB[j] = id
			j++
		}
	}
	return all, ofA, ofB
}

// columnOf returns the number of a feature, given its place among the keys.
func (m *Model) columnOf(id int) int {
	if m.column == nil {
		return id
	}
	return int(m.column[id])
}

// placeOf is the inverse of columnOf.
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
