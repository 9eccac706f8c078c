package tfidf

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"giantstream/featurize/sparse"
)

// Terms names groups of texts by their words and word pairs. It is for one
// goroutine.
type Terms struct {
	model *Model
	texts *sparse.Matrix
	sums  []float64 // by feature, all zero between calls
}

// Term is an n-gram that stands for a group of texts.
type Term struct {
	// Text is the word, or the two words: "kernel module".
	Text string
	// Weight is the mean TF-IDF weight of the term over the group.
	Weight float32
}

// NewTerms names groups of the rows of x, a matrix that m made.
func NewTerms(m *Model, x *sparse.Matrix) *Terms {
	features := m.first[Char3] // features below are words and pairs
	if m.column != nil {
		features = m.Dim() // and those that an extension has brought
	}
	return &Terms{m, x, make([]float64, features)}
}

// Mean returns the mean weight of every word and pair over the rows that
// members names.
func (t *Terms) Mean(members []int32) sparse.Vector {
	var v sparse.Vector
	for _, i := range members {
		row := t.texts.Row(int(i))
		for p, j := range row.Index {
			if int(j) >= len(t.sums) {
				break
			}
			if t.model.column != nil && t.model.PartOf(int(j)) == Char3 {
				continue
			}
			if t.sums[j] == 0 {
				v.Index = append(v.Index, j)
			}
			t.sums[j] += float64(row.Value[p])
		}
	}
	slices.Sort(v.Index)
	v.Value = make([]float32, len(v.Index))
	for k, j := range v.Index {
		v.Value[k] = float32(t.sums[j] / float64(len(members)))
		t.sums[j] = 0
	}
	return v
}

// Top returns the k terms that set a group apart from the larger group that
// it is part of, given the Mean of both: those of the largest w·ln(w/w'), w
// the weight in the group and w' that in the larger one. What weighs as much there, such
// as words that every text has, says nothing here. Single words that occur in a
// pair already chosen, and pairs of which a word was chosen, are passed over, so that
// k terms say k things.
func (t *Terms) Top(group, within sparse.Vector, k int) []Term {
	type scored struct {
		term  int // position in group
		score float64
	}
	ranked := make([]scored, 0, len(group.Index))
	at := 0
	for p, j := range group.Index {
		for at < len(within.Index) && within.Index[at] < j {
			at++
		}
		if at == len(within.Index) || within.Index[at] != j {
			continue // not part of the larger group
		}
		w := float64(group.Value[p])
		if score := w * math.Log(w/float64(within.Value[at])); score > 0 {
			ranked = append(ranked, scored{p, score})
		}
	}
	slices.SortFunc(ranked, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.term, b.term))
	})
	var terms []Term
	said := map[string]bool{}
	for _, r := range ranked {
		if len(terms) >= k {
			break
		}
		j := int(group.Index[r.term])
		text := strings.TrimPrefix(t.model.Feature(j), "w:")
		parts := []string{text}
		if t.model.PartOf(j) == Word2 {
			first, second := t.model.pair(t.model.keys[t.model.placeOf(j)])
			parts = []string{first, second}
		}
		if slices.ContainsFunc(parts, func(w string) bool { return said[w] }) {
			continue
		}
		for _, w := range parts {
			said[w] = true
		}
		terms = append(terms, Term{Text: text, Weight: group.Value[r.term]})
	}
	return terms
}
