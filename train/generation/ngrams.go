package generation

import (
	"sync/atomic"

	"giantstream/featurize/tfidf"
)

// NGramCount adds up n-grams on any number of goroutines.
type NGramCount struct{ total, unknown atomic.Int64 }

// Add counts the n-grams of a text.
func (c *NGramCount) Add(n tfidf.NGrams) {
	c.total.Add(n.Total)
	c.unknown.Add(n.Unknown)
}

// Total returns the n-grams counted.
func (c *NGramCount) Total() int64 { return c.total.Load() }

// Unknown returns those of them that the vocabulary does not have.
func (c *NGramCount) Unknown() int64 { return c.unknown.Load() }
