package linear

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/internal/parallel"
	"giantstream/train/internal/vector"
)

// Kind is the encoder's name in configuration and artifacts.
const Kind = "linear"

// Vectorizer is Ψ; *tfidf.Model is one.
type Vectorizer interface {
	Dim() int
	Transform(text string, dst sparse.Vector) sparse.Vector
}

// Projection maps Ψ(T) to Dim() numbers, of which the first k are the best
// projection to k dimensions; *projection.Projection is one.
type Projection interface {
	Dim() int
	Apply(v sparse.Vector, out []float32)
}

// Encoder is Φ(T) = Wᵀx / ‖Wᵀx‖, x the projection of Ψ(T). A text without a
// known n-gram gets the zero vector.
type Encoder struct {
	vectorizer Vectorizer
	projection Projection
	weights    []float32 // Rank×dim
	dim        int
}

var _ train.Encoder = (*Encoder)(nil)

// New joins the matrix that Fit returned to the vectorizer and projection
// whose outputs it was fitted on.
func New(v Vectorizer, p Projection, weights []float32, dim int) (*Encoder, error) {
	if dim < 1 || len(weights) != p.Dim()*dim {
		return nil, fmt.Errorf("linear: %d weights do not map %d numbers to %d", len(weights), p.Dim(), dim)
	}
	return &Encoder{v, p, weights, dim}, nil
}

// Kind returns "linear".
func (e *Encoder) Kind() string { return Kind }

// Dim returns the length of an embedding.
func (e *Encoder) Dim() int { return e.dim }

// Weights returns W, Rank×Dim, not to be changed.
func (e *Encoder) Weights() []float32 { return e.weights }

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	if len(out) != len(texts)*e.dim {
		return fmt.Errorf("linear: room for %d numbers, %d texts need %d", len(out), len(texts), len(texts)*e.dim)
	}
	parallel.Each(len(texts), 32, 0, func(_, lo, hi int) {
		var features sparse.Vector
		x := make([]float32, e.projection.Dim())
		for i := lo; i < hi; i++ {
			features = e.vectorizer.Transform(texts[i], features)
			e.projection.Apply(features, x)
			Project(e.weights, x, out[i*e.dim:(i+1)*e.dim])
		}
	})
	return nil
}

// Project writes Wᵀx / ‖Wᵀx‖ to out.
func Project(weights, x, out []float32) {
	clear(out)
	for k, v := range x {
		vector.Axpy(v, weights[k*len(out):(k+1)*len(out)], out)
	}
	vector.Normalize(out)
}
