package train

import "giantstream/featurize/sparse"

// Vectorizer is Ψ as encoders need it; *tfidf.Model is one. Transform re-uses
// the capacity of dst and is safe for concurrent use.
type Vectorizer interface {
	Dim() int
	Transform(text string, dst sparse.Vector) sparse.Vector
}

// Projection maps Ψ(T) to Dim() numbers, of which the first k are the best
// projection to k dimensions; *projection.Projection is one. Apply overwrites
// out and is safe for concurrent use.
type Projection interface {
	Dim() int
	Apply(v sparse.Vector, out []float32)
}
