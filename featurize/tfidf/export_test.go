package tfidf

// Add counts one document.
func (f *Fitter) Add(text string) { f.AddAll([]string{text}, 1) }

// Undercount returns the bound by which the document frequency of any n-gram
// of a part may be too low; it is never too high. 0 without a memory budget. Where
// pairs or character runs alone outgrow the budget, it is at most 2·M/c: M the sum of
// all document frequencies of the part, c the n-grams of it that the budget holds.
func (f *Fitter) Undercount(p Part) int {
	sum := 0
	for _, c := range f.counters {
		if c.budget != nil && p < numParts {
			sum += int(c.budget.missed[p])
		}
	}
	return sum
}

// Renumbered returns the model with other numbers of its features.
func (m *Model) Renumbered(column []int32) *Model {
	out := &Model{profile: m.profile, docs: m.docs, words: m.words, keys: m.keys, idf: m.idf, first: m.first,
		column: column}
	out.index()
	return out
}
