package tfidf

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
)

// NGram is an n-gram and the number of documents that hold it. N-grams of several Fitters, each of a share of the
// documents, add up: merge what NGrams yields in the order of Compare, add the frequencies of equal ones and give the
// sums to a Chooser. The model is then the one that a single Fitter without a memory budget would have made.
type NGram struct {
	Part Part
	// Word is the word of a Word1 and the first one of a Word2, Next the second one of a Word2.
	Word, Next string
	// Runes are those of a Char3, packed.
	Runes uint64
	DF    int
}

// Compare orders n-grams by part, then by word, next word and runes: 0 for the same n-gram.
func (g NGram) Compare(other NGram) int {
	return cmp.Or(cmp.Compare(g.Part, other.Part), strings.Compare(g.Word, other.Word),
		strings.Compare(g.Next, other.Next), cmp.Compare(g.Runes, other.Runes))
}

// NGrams yields what has been counted so far, ascending.
func (f *Fitter) NGrams() iter.Seq[NGram] {
	return func(yield func(NGram) bool) {
		words, ids := f.mergeWords()
		word := func(id uint64) string { return string(words.word(int(id))) }
		for p, on := range f.opt.enabledParts() {
			if !on {
				continue
			}
			for _, ft := range addUp(f.candidates(Part(p), ids)) {
				g := NGram{Part: Part(p), DF: int(ft.df)}
				switch g.Part {
				case Word1:
					g.Word = word(ft.key)
				case Word2:
					g.Word, g.Next = word(ft.key>>32), word(ft.key&math.MaxUint32)
				default:
					g.Runes = ft.key
				}
				if !yield(g) {
					return
				}
			}
		}
	}
}

// Chooser chooses the features of a model among counted n-grams. It keeps at most twice as many as the model will
// have.
type Chooser struct {
	opt    Options
	docs   int
	within [numParts]func(df int) bool
	parts  [numParts][]NGram
}

// NewChooser returns a Chooser for the n-grams of the given number of documents. It ignores memory budgets.
func NewChooser(opt Options, docs int) (*Chooser, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	c := &Chooser{opt: opt, docs: docs}
	for p, limits := range opt.Parts {
		c.within[p] = limits.documents(docs)
	}
	return c, nil
}

// Wants reports whether an n-gram of a part may be a feature if df documents hold it.
func (c *Chooser) Wants(p Part, df int) bool {
	return c.opt.Parts[p].MaxFeatures > 0 && c.within[p](df)
}

// Add takes an n-gram. The caller adds each n-gram once.
func (c *Chooser) Add(g NGram) {
	if !c.Wants(g.Part, g.DF) {
		return
	}
	most := c.opt.Parts[g.Part].MaxFeatures
	c.parts[g.Part] = append(c.parts[g.Part], g)
	if len(c.parts[g.Part]) >= 2*most {
		c.trim(g.Part)
	}
}

// trim keeps the features of a part, in the order of their ids.
func (c *Chooser) trim(p Part) {
	kept := mostFrequent(c.parts[p], c.opt.Parts[p].MaxFeatures, func(a, b NGram) int {
		return cmp.Or(cmp.Compare(a.DF, b.DF), a.Compare(b))
	})
	c.parts[p] = append(c.parts[p][:0], kept...)
}

// Chosen yields the n-grams that are features so far.
func (c *Chooser) Chosen() iter.Seq[NGram] {
	return func(yield func(NGram) bool) {
		for p := range c.parts {
			c.trim(Part(p))
			for _, g := range c.parts[p] {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// Fit returns the model of the chosen n-grams, ErrNoText if there is none.
func (c *Chooser) Fit() (*Model, error) {
	var all []string
	for g := range c.Chosen() {
		if g.Part != Char3 {
			all = append(all, g.Word)
		}
		if g.Part == Word2 {
			all = append(all, g.Next)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	words := &wordTable{start: []int64{0}}
	id := make(map[string]uint64, len(all))
	for i, w := range all {
		words.append([]byte(w))
		id[w] = uint64(i)
	}
	var parts [numParts][]feature
	for g := range c.Chosen() {
		ft := feature{key: g.Runes, df: int32(g.DF)}
		switch g.Part {
		case Word1:
			ft.key = id[g.Word]
		case Word2:
			ft.key = pairKey(int32(id[g.Word]), int32(id[g.Next]))
		}
		parts[g.Part] = append(parts[g.Part], ft)
	}
	return newModel(c.opt.Profile, c.docs, words, parts)
}
