package linear

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/encoders/parts"
	"giantstream/train/numeric"
)

// LSAKind is the encoder's name in configuration and artifacts.
const LSAKind = "lsa"

// LSA is the text-only baseline: latent semantic analysis, the projection of Ψ(T) to its first Dim
// components, normalized. It does not use the graph, so the gain of another encoder over it is the
// gain from the graph. Φ(T) = x/‖x‖, where x is the first Dim numbers of the projection of Ψ(T).
type LSA struct {
	vectorizer train.Vectorizer
	projection train.Projection
	dim        int
}

var (
	_ train.FeatureEncoder = (*LSA)(nil)
	_ parts.Encoder        = (*LSA)(nil)
)

// NewLSA returns the baseline of dim dimensions, at most the projection's.
func NewLSA(v train.Vectorizer, p train.Projection, dim int) (*LSA, error) {
	if dim < 1 || dim > p.Dim() {
		return nil, fmt.Errorf("lsa: %d dimensions of a projection that has %d", dim, p.Dim())
	}
	return &LSA{v, p, dim}, nil
}

// Kind returns "lsa".
func (e *LSA) Kind() string { return LSAKind }

// Dim returns the length of an embedding.
func (e *LSA) Dim() int { return e.dim }

// Encode implements train.Encoder.
func (e *LSA) Encode(texts []string, out []float32) error {
	return e.EncodeFeatures(texts, train.FeaturesOf(e.vectorizer, texts), out)
}

// EncodeFeatures implements train.FeatureEncoder.
func (e *LSA) EncodeFeatures(texts []string, features train.TextFeatures, out []float32) error {
	return train.EncodeFeatures(len(texts), features, e.dim, out, func() func(sparse.Vector, []float32) {
		x := make([]float32, e.projection.Dim())
		return func(features sparse.Vector, out []float32) {
			e.projection.Apply(features, x)
			copy(out, x)
			numeric.Normalize(out)
		}
	})
}

// Parts implements parts.Encoder.
func (e *LSA) Parts(_, texts []string, q []float32) ([]parts.Cosine, error) {
	x := make([]float32, e.projection.Dim())
	return parts.OfNGrams(LSAKind, e.vectorizer, e.dim, func(psi sparse.Vector, y []float32) {
		e.projection.Apply(psi, x)
		copy(y, x)
	}, func(psi sparse.Vector) float32 {
		e.projection.Apply(psi, x)
		return numeric.Dot(x[:len(q)], q)
	}, texts, q), nil
}
