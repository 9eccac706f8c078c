package train

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
)

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

// EncodeTexts writes the embedding of texts[i] to out[i*dim : (i+1)*dim]. start is
// called once per block of texts and returns the function that embeds one text's
// features, so that it can own scratch memory.
func EncodeTexts(v Vectorizer, texts []string, dim int, out []float32, start func() func(features sparse.Vector,
	out []float32)) error {
	if len(out) != len(texts)*dim {
		return fmt.Errorf("encode: room for %d numbers, %d texts need %d", len(out), len(texts), len(texts)*dim)
	}
	parallel.Each(len(texts), 32, 0, func(_, _, lo, hi int) {
		embed := start()
		var features sparse.Vector
		for i := lo; i < hi; i++ {
			features = v.Transform(texts[i], features)
			embed(features, out[i*dim:(i+1)*dim])
		}
	})
	return nil
}
