package tfidf

import (
	"cmp"
	"slices"
	"strings"

	"giantstream/featurize/sparse"
)

// Term is an n-gram that stands for a group of texts.
type Term struct {
	// Text is the word, or the two words: "kernel module".
	Text string
	// Weight is the mean TF-IDF weight of the term over the group.
	Weight float32
}

// TopTerms returns the k words and word pairs of the largest mean weight over
// the rows of x that members names; x is a matrix that m made. Single words
// that occur in a pair already chosen, and pairs of which a word was chosen, are passed
// over, so that k terms say k things.
func TopTerms(m *Model, x *sparse.Matrix, members []int32, k int) []Term {
	words := m.first[Char3] // features below are words and pairs
	sums := make([]float64, words)
	var seen []int32
	for _, i := range members {
		row := x.Row(int(i))
		for p, j := range row.Index {
			if int(j) >= words {
				break
			}
			if sums[j] == 0 {
				seen = append(seen, j)
			}
			sums[j] += float64(row.Value[p])
		}
	}
	slices.SortFunc(seen, func(a, b int32) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	var terms []Term
	said := map[string]bool{}
	for _, j := range seen {
		if len(terms) >= k {
			break
		}
		text := strings.TrimPrefix(m.Feature(int(j)), "w:")
		parts := []string{text}
		if m.PartOf(int(j)) == Word2 {
			parts = strings.SplitN(text, " ", 2)
		}
		if slices.ContainsFunc(parts, func(w string) bool { return said[w] }) {
			continue
		}
		for _, w := range parts {
			said[w] = true
		}
		terms = append(terms, Term{Text: text, Weight: float32(sums[j] / float64(len(members)))})
	}
	return terms
}
