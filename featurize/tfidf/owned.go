package tfidf

import (
	"fmt"

	"giantstream/featurize/sparse"
)

// Owned are the n-grams that some texts have, less those that others have as well.
type Owned struct {
	model *Model // of all n-grams of the texts
	// shared are its features that other texts have, too.
	shared []bool
}

// unboundedDocs is a number of documents with which no n-gram gets the weight 0, which Counts leaves out.
const unboundedDocs = 1 << 24

// NewOwned returns the n-grams of texts. Share takes those of others out.
func NewOwned(opt Options, texts []string) (*Owned, error) {
	opt = opt.KeepAll()
	opt.MemoryBudget = 0
	fitter, err := NewFitter(opt)
	if err != nil {
		return nil, err
	}
	fitter.AddAll(texts, 1)
	chooser, err := NewChooser(opt, unboundedDocs)
	if err != nil {
		return nil, err
	}
	for g := range fitter.NGrams() {
		chooser.Add(g)
	}
	model, err := chooser.Fit()
	if err != nil {
		return nil, fmt.Errorf("n-grams of %d texts: %w", len(texts), err)
	}
	return &Owned{model: model, shared: make([]bool, model.Dim())}, nil
}

// Share takes the n-grams of another text out.
func (o *Owned) Share(text string) {
	counts, _ := o.model.Counts(text, sparse.Vector{})
	for _, feature := range counts.Index {
		o.shared[feature] = true
	}
}

// NGramsOf returns the n-grams of a vocabulary that are owned, as Model.Feature names them.
func (o *Owned) NGramsOf(vocabulary *Model) (names []string) {
	owned := map[string]bool{}
	for i, shared := range o.shared {
		if !shared {
			owned[o.model.Feature(i)] = true
		}
	}
	for i := range vocabulary.Dim() {
		if name := vocabulary.Feature(i); owned[name] {
			names = append(names, name)
		}
	}
	return names
}
