package tfidf

// NGrams counts the n-grams of texts, with repetitions, and those of them that are no
// features of the model. Rare and ubiquitous n-grams are left out of a model from the
// start: what tells that a vocabulary ages is how far the share of unknown
// ones rises above that of the texts of the fit.
type NGrams struct{ Total, Unknown int64 }

// Share returns the share of the n-grams that are unknown, 0 of none.
func (n NGrams) Share() float64 { return float64(n.Unknown) / float64(max(1, n.Total)) }
