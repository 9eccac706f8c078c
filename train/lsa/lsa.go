// Package lsa is the text-only baseline: latent semantic analysis, the
// projection of Ψ(T) to its first Dim components, normalised. It knows
// nothing of the graph; what another encoder gains over it is what the graph
// gives.
package lsa

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/internal/parallel"
	"giantstream/train/internal/vector"
	"giantstream/train/linear"
)

// Kind is the encoder's name in configuration and artifacts.
const Kind = "lsa"

// Encoder is Φ(T) = x/‖x‖, x the first Dim numbers of the projection of Ψ(T).
type Encoder struct {
	vectorizer linear.Vectorizer
	projection linear.Projection
	dim        int
}

var _ train.Encoder = (*Encoder)(nil)

// New returns the baseline of dim dimensions, at most the projection's.
func New(v linear.Vectorizer, p linear.Projection, dim int) (*Encoder, error) {
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
	if len(out) != len(texts)*e.dim {
		return fmt.Errorf("lsa: room for %d numbers, %d texts need %d", len(out), len(texts), len(texts)*e.dim)
	}
	parallel.Each(len(texts), 32, 0, func(_, lo, hi int) {
		var features sparse.Vector
		x := make([]float32, e.projection.Dim())
		for i := lo; i < hi; i++ {
			features = e.vectorizer.Transform(texts[i], features)
			e.projection.Apply(features, x)
			row := out[i*e.dim : (i+1)*e.dim]
			copy(row, x)
			vector.Normalize(row)
		}
	})
	return nil
}

// Truncate returns the baseline's embeddings of nodes whose projections
// (n×rank) are at hand.
func Truncate(projected []float32, rank, dim int) []float32 {
	n := len(projected) / rank
	out := make([]float32, n*dim)
	parallel.Each(n, 1024, 0, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := out[i*dim : (i+1)*dim]
			copy(row, projected[i*rank:])
			vector.Normalize(row)
		}
	})
	return out
}
