package answer

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"giantstream/featurize/tfidf"
	"giantstream/train/encoders/parts"
	"giantstream/train/numeric"
)

const (
	maxExplained = 100 // similar items with reasons in a request: each has its text encoded
	maxReasons   = 10  // n-grams of an answer
	// sameVector is the lowest cosine of an embedding in the index, in twelve bits, and the same embedding as a float.
	sameVector = 0.999
)

// Parts of a cosine, see the package parts. Views and Rounding add up to it, and NGrams and Others to those of the
// Views that are of n-grams: bag, linear and lsa.
type Parts struct {
	Views []ViewPart `json:"views"`
	// Rounding is what the cosine differs by, since the index knows vectors in twelve bits.
	Rounding float64 `json:"rounding"`
	// NGrams of the answer's text that add or take most, these first.
	NGrams []NGramPart `json:"ngrams"`
	// Others is what the other n-grams add.
	Others float64 `json:"others"`
}

// ViewPart is what a view adds: bag, linear, lsa, bert, orders or vector.NAME.
type ViewPart struct {
	Name   string  `json:"name"`
	Cosine float64 `json:"cosine"`
}

// NGramPart is what an n-gram adds.
type NGramPart struct {
	Text   string  `json:"text"`
	Kind   string  `json:"kind"`
	Cosine float64 `json:"cosine"`
}

// Kinds of n-grams.
const (
	Word       = "word"
	Pair       = "pair"       // of words in a row
	Characters = "characters" // three in a row
)

// Why an answer has no reasons.
const (
	noText    = "its text is not known here yet"
	noNGram   = "its text has nothing that the encoder knows: its embedding is of its neighbours"
	otherwise = "its embedding is not of the text that it has now"
)

// explain adds reasons to answers.
func (s *state) explain(answers []Neighbour, f found, texts []string) error {
	q := slices.Clone(f.sum)
	numeric.Normalize(q)
	ids := make([]string, len(answers))
	for i, one := range answers {
		ids[i] = one.ID
	}
	all, err := s.generation.Parts(ids, texts, q)
	if err != nil {
		return fmt.Errorf("the reasons: %w", err)
	}
	for i := range answers {
		one := &answers[i]
		if one.WhyNot = whyNot(texts[i], &all[i], f.vectors[i]); one.WhyNot == "" {
			one.Because = s.partsOf(&all[i], float64(one.Cosine), float64(f.lengths[i]))
		}
	}
	return nil
}

// whyNot says why the parts of a cosine are no reasons of an answer, "" if they are.
func whyNot(text string, c *parts.Cosine, stored []float32) string {
	switch {
	case text == "":
		return noText
	case numeric.Dot(c.Embedding, c.Embedding) == 0:
		return noNGram
	case numeric.Cosine(c.Embedding, stored) < sameVector:
		return otherwise
	}
	return ""
}

// partsOf names the parts of a cosine, which are multiplied by the length of the answer.
func (s *state) partsOf(c *parts.Cosine, cosine, length float64) *Parts {
	out := &Parts{Views: []ViewPart{}, Rounding: cosine, NGrams: []NGramPart{}}
	for _, v := range c.Views {
		out.Views = append(out.Views, ViewPart{v.Name, length * v.Value})
		if out.Rounding -= length * v.Value; v.OfNGrams {
			out.Others += length * v.Value
		}
	}
	order := make([]int, len(c.NGrams))
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(math.Abs(c.Values[b]), math.Abs(c.Values[a])), cmp.Compare(c.NGrams[a], c.NGrams[b]))
	})
	for _, k := range order[:min(len(order), maxReasons)] {
		text, kind := s.ngram(int(c.NGrams[k]))
		out.NGrams = append(out.NGrams, NGramPart{text, kind, length * c.Values[k]})
		out.Others -= length * c.Values[k]
	}
	return out
}

// ngram returns an n-gram and its kind.
func (s *state) ngram(column int) (text, kind string) {
	v := s.generation.Vectorizer
	text = v.Feature(column)[len("w:"):]
	switch v.PartOf(column) {
	case tfidf.Word1:
		return text, Word
	case tfidf.Word2:
		return text, Pair
	}
	return text, Characters
}
