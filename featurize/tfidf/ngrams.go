package tfidf

import "sync/atomic"

// NGrams counts the n-grams of texts, with repetitions, and how many of them are no features of the
// model. A model leaves out rare and ubiquitous n-grams from the start. A vocabulary ages as the
// share of unknown n-grams rises above that of the fitted texts.
type NGrams struct{ Total, Unknown int64 }

// Share returns the share of the n-grams that are unknown, 0 of none.
func (n NGrams) Share() float64 { return float64(n.Unknown) / float64(max(1, n.Total)) }

// NGramCount adds up n-grams on any number of goroutines.
type NGramCount struct{ total, unknown atomic.Int64 }

// Add counts the n-grams of a text.
func (c *NGramCount) Add(n NGrams) {
	c.total.Add(n.Total)
	c.unknown.Add(n.Unknown)
}

// Total returns how many n-grams were counted.
func (c *NGramCount) Total() int64 { return c.total.Load() }

// Unknown returns how many of them are no features.
func (c *NGramCount) Unknown() int64 { return c.unknown.Load() }
