package tfidf

import (
	"errors"
	"fmt"
	"math"
)

// Part is one of the three vectorizers that stand side by side.
type Part uint8

// The parts, in the order of their feature ids.
const (
	Word1 Part = iota // single words
	Word2             // pairs of neighbouring words
	Char3             // three characters inside a space-padded word
	numParts
)

// Limits choose the features of one part.
type Limits struct {
	// MaxFeatures is the budget: the most frequent n-grams are kept. 0
	// leaves the part out.
	MaxFeatures int
	// MinDF is the number of documents that an n-gram must occur in.
	MinDF int
	// MaxDF is the fraction of documents that it may occur in at most.
	MaxDF float64
}

// Options are the settings of a fit.
type Options struct {
	Profile Profile
	Parts   [numParts]Limits
	// MemoryBudget bounds the bytes that a Fitter takes, by forgetting n-grams
	// that are rare so far; 0 keeps all. See the package documentation for
	// what that does to document frequencies.
	MemoryBudget int64
}

// KeepAll returns the options without limits by document frequency.
func (o Options) KeepAll() Options {
	for p := range o.Parts {
		o.Parts[p].MinDF, o.Parts[p].MaxDF = min(1, o.Parts[p].MinDF), 1
	}
	return o
}

// enabledParts reports for each part whether it has features.
func (o *Options) enabledParts() (on [numParts]bool) {
	for p, l := range o.Parts {
		on[p] = l.MaxFeatures > 0
	}
	return on
}

// maxFeatures bounds one part's budget, so that a model stays loadable.
const maxFeatures = 1 << 24

// Validate reports every fault of the options.
func (o Options) Validate() error {
	var errs []error
	if !o.Profile.valid() {
		errs = append(errs, fmt.Errorf("tfidf: unknown profile %d", o.Profile))
	}
	if o.MemoryBudget != 0 && o.MemoryBudget < minBudget {
		errs = append(errs, fmt.Errorf("tfidf: memory budget of %d bytes, want at least %d, or 0 for no bound",
			o.MemoryBudget, minBudget))
	}
	total := 0
	for p, l := range o.Parts {
		name := partNames[p]
		if l.MaxFeatures < 0 || l.MaxFeatures > maxFeatures {
			errs = append(errs, fmt.Errorf("tfidf: %s: max features %d, want 0 to %d", name, l.MaxFeatures,
				maxFeatures))
		}
		if l.MaxFeatures == 0 {
			continue
		}
		if l.MinDF < 0 {
			errs = append(errs, fmt.Errorf("tfidf: %s: min df %d must not be negative", name, l.MinDF))
		}
		if math.IsNaN(l.MaxDF) || l.MaxDF <= 0 || l.MaxDF > 1 {
			errs = append(errs, fmt.Errorf("tfidf: %s: max df %v, want a fraction in (0, 1]", name, l.MaxDF))
		}
		total += l.MaxFeatures
	}
	if total <= 0 {
		errs = append(errs, errors.New("tfidf: all parts are left out; give at least one a feature budget"))
	}
	return errors.Join(errs...)
}

var partNames = [numParts]string{"word 1-grams", "word 2-grams", "character 3-grams"}
