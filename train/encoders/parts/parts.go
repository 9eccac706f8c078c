// Package parts says what the cosine of a vector and an embedding is made of.
//
// An embedding is y/‖y‖, and y is a sum: over the views of an encoder, and within some of these over the n-grams of the
// text, each times its weight in Ψ. The cosine with q, of length 1, is ⟨q, y⟩/‖y‖, which is a sum with it. The lengths
// to which views and embedding are scaled are those that they have: a part is what the n-gram or the view adds to the
// item as it is, not how an item without it would lie.
package parts

import (
	"math"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/numeric"
)

// Cosine is a cosine in parts.
type Cosine struct {
	// Embedding is the embedding that the parts are of.
	Embedding []float32
	// Views, added up, are the cosine.
	Views []View
	// NGrams are those of the text, as columns of Ψ, and Values what each adds. They add up to those Views that are
	// OfNGrams.
	NGrams []int32
	Values []float64
}

// View is what a view adds to a cosine.
type View struct {
	Name     string
	Value    float64
	OfNGrams bool
}

// Encoder is one whose embeddings are sums.
type Encoder interface {
	train.Encoder
	// Parts returns the parts of the cosines of q, of length 1, and the first len(q) numbers of items' embeddings.
	Parts(ids, texts []string, q []float32) ([]Cosine, error)
}

// Split is Parts of any encoder: one view alone if its embeddings are no sums.
func Split(e train.Encoder, ids, texts []string, q []float32) ([]Cosine, error) {
	if p, is := e.(Encoder); is {
		return p.Parts(ids, texts, q)
	}
	vectors, dim := make([]float32, len(texts)*e.Dim()), e.Dim()
	if err := train.EncodeItems(e, ids, texts, nil, vectors); err != nil {
		return nil, err
	}
	all := make([]Cosine, len(texts))
	for i := range all {
		v := vectors[i*dim : i*dim+len(q)]
		all[i] = Cosine{Embedding: v, Views: []View{{Name: e.Kind(), Value: numeric.Cosine(v, q)}}}
	}
	return all, nil
}

// OfNGrams is Parts of texts whose y is a sum over n-grams and no more. sum writes y of a vector of n-grams, and
// toward returns ⟨q, y⟩.
func OfNGrams(view string, v train.Vectorizer, dim int, sum func(psi sparse.Vector, y []float32),
	toward func(psi sparse.Vector) float32, texts []string, q []float32) []Cosine {
	all := make([]Cosine, len(texts))
	for i, text := range texts {
		psi, y := v.Transform(text, sparse.Vector{}), make([]float32, dim)
		sum(psi, y)
		y = y[:len(q)]
		scale := Inverse(y)
		all[i] = Cosine{Embedding: y, Views: []View{{view, float64(numeric.Dot(y, q)) * scale, true}}}
		all[i].AddNGrams(psi, func(one sparse.Vector) float64 { return float64(toward(one)) * scale })
	}
	return all
}

// AddNGrams adds the n-grams of a text with what of says of each, as a vector that has it alone, with its weight.
func (p *Cosine) AddNGrams(psi sparse.Vector, of func(one sparse.Vector) float64) {
	for k := range psi.Index {
		p.NGrams = append(p.NGrams, psi.Index[k])
		p.Values = append(p.Values, of(sparse.Vector{Index: psi.Index[k : k+1], Value: psi.Value[k : k+1]}))
	}
}

// Inverse is 1/‖x‖, and 0 for a zero vector.
func Inverse(x []float32) float64 {
	if length := math.Sqrt(float64(numeric.Dot(x, x))); length > 0 {
		return 1 / length
	}
	return 0
}
