// Package lsa is the text-only baseline: latent semantic analysis, the
// projection of Ψ(T) to its first Dim components, normalised. It knows
// nothing of the graph; what another encoder gains over it is what the graph
// gives.
package lsa

import (
	"fmt"

	"giantstream/featurize/parallel"
	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/internal/encoding"
	"giantstream/train/internal/vector"
)

// Kind is the encoder's name in configuration and artifacts.
const Kind = "lsa"

// Encoder is Φ(T) = x/‖x‖, x the first Dim numbers of the projection of Ψ(T).
type Encoder struct {
	vectorizer train.Vectorizer
	projection train.Projection
	dim        int
}

var _ train.Encoder = (*Encoder)(nil)

// New returns the baseline of dim dimensions, at most the projection's.
func New(v train.Vectorizer, p train.Projection, dim int) (*Encoder, error) {
	if dim < 1 || dim > p.Dim() {
		return nil, fmt.Errorf("lsa: %d dimensions of a projection that has %d", dim, p.Dim())
	}
	return &Encoder{v, p, dim}, nil
}

// Kind returns "lsa".
func (e *Encoder) Kind() string { return Kind }

// Dim returns the length of an embedding.
func (e *Encoder) Dim() int { return e.dim }

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	return encoding.Texts(e.vectorizer, texts, e.dim, out, func() func(sparse.Vector, []float32) {
		x := make([]float32, e.projection.Dim())
		return func(features sparse.Vector, out []float32) {
			e.projection.Apply(features, x)
			copy(out, x)
			vector.Normalize(out)
		}
	})
}

// Normalize makes embeddings of projections cut to dim numbers each, in place.
func Normalize(projected []float32, dim int) {
	parallel.Each(len(projected)/dim, 1024, 0, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			vector.Normalize(projected[i*dim : (i+1)*dim])
		}
	})
}

// Truncate returns the baseline's embeddings of nodes whose projections
// (n×rank) are at hand.
func Truncate(projected []float32, rank, dim int) []float32 {
	n := len(projected) / rank
	out := make([]float32, n*dim)
	for i := range n {
		copy(out[i*dim:(i+1)*dim], projected[i*rank:])
	}
	Normalize(out, dim)
	return out
}
