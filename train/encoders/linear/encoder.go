package linear

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/encoders/parts"
	"giantstream/train/numeric"
)

// Kind is the encoder's name in configuration and artifacts.
const Kind = "linear"

// Encoder is Φ(T) = Wᵀx / ‖Wᵀx‖, x the projection of Ψ(T). A text without a
// known n-gram gets the zero vector.
type Encoder struct {
	vectorizer train.Vectorizer
	projection train.Projection
	weights    []float32 // Rank×dim
	dim        int
}

var (
	_ train.FeatureEncoder = (*Encoder)(nil)
	_ parts.Encoder        = (*Encoder)(nil)
)

// New joins the matrix that Fit returned to the vectorizer and projection
// whose outputs it was fitted on.
func New(v train.Vectorizer, p train.Projection, weights []float32, dim int) (*Encoder, error) {
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

// Rotate multiplies every embedding by axes (Dim×Dim, orthogonal). The encoder must not be in use.
func (e *Encoder) Rotate(axes []float32) { numeric.Rotate(e.weights, axes, e.dim) }

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	return e.EncodeFeatures(texts, train.FeaturesOf(e.vectorizer, texts), out)
}

// EncodeFeatures implements train.FeatureEncoder.
func (e *Encoder) EncodeFeatures(texts []string, features train.TextFeatures, out []float32) error {
	return train.EncodeFeatures(len(texts), features, e.dim, out, func() func(sparse.Vector, []float32) {
		x := make([]float32, e.projection.Dim())
		return func(features sparse.Vector, out []float32) {
			e.projection.Apply(features, x)
			Project(e.weights, x, out)
		}
	})
}

// Parts implements parts.Encoder.
func (e *Encoder) Parts(_, texts []string, q []float32) ([]parts.Cosine, error) {
	x, back := make([]float32, e.projection.Dim()), ApplyTo(e.weights, e.dim, q)
	return parts.OfNGrams(Kind, e.vectorizer, e.dim, func(psi sparse.Vector, y []float32) {
		e.projection.Apply(psi, x)
		Map(e.weights, x, y)
	}, func(psi sparse.Vector) float32 {
		e.projection.Apply(psi, x)
		return numeric.Dot(x, back)
	}, texts, q), nil
}

// ApplyTo returns W q, so that ⟨q, Wᵀx⟩ is its product with x. q has the first numbers of dim.
func ApplyTo(weights []float32, dim int, q []float32) []float32 {
	back := make([]float32, len(weights)/dim)
	for k := range back {
		back[k] = numeric.Dot(weights[k*dim:k*dim+len(q)], q)
	}
	return back
}

// Project writes Wᵀx / ‖Wᵀx‖ to out.
func Project(weights, x, out []float32) {
	Map(weights, x, out)
	numeric.Normalize(out)
}

// Map writes Wᵀx to out.
func Map(weights, x, out []float32) {
	clear(out)
	for k, v := range x {
		numeric.Axpy(v, weights[k*len(out):(k+1)*len(out)], out)
	}
}
