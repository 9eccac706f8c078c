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

// TextFeatures returns Ψ of text i of some texts, re-using the capacity of dst if it likes. It is called concurrently.
type TextFeatures func(i int, dst sparse.Vector) sparse.Vector

// FeaturesOf computes Ψ of texts.
func FeaturesOf(v Vectorizer, texts []string) TextFeatures {
	return func(i int, dst sparse.Vector) sparse.Vector { return v.Transform(texts[i], dst) }
}

// FeatureEncoder is an Encoder that can take Ψ of the texts from a caller who has it.
type FeatureEncoder interface {
	Encoder
	// EncodeFeatures is Encode, with Ψ of the texts.
	EncodeFeatures(texts []string, features TextFeatures, out []float32) error
}

// EncodeFeatures writes the embedding of text i of n to out[i*dim : (i+1)*dim]. start is called once
// per block of texts and returns the function that embeds one text's features, so that it can own scratch memory.
func EncodeFeatures(n int, features TextFeatures, dim int, out []float32, start func() func(features sparse.Vector,
	out []float32)) error {
	if len(out) != n*dim {
		return fmt.Errorf("encode: room for %d numbers, %d texts need %d", len(out), n, n*dim)
	}
	parallel.ForEach(n, 32, 0, func(_, _, lo, hi int) {
		embed := start()
		var x sparse.Vector
		for i := lo; i < hi; i++ {
			x = features(i, x)
			embed(x, out[i*dim:(i+1)*dim])
		}
	})
	return nil
}

// ItemEncoder is an Encoder that knows more of some items than their texts say, such as what they are bought with.
type ItemEncoder interface {
	FeatureEncoder
	// EncodeItems is EncodeFeatures of the texts of the items with these ids. features is nil where the caller has
	// none.
	EncodeItems(ids, texts []string, features TextFeatures, out []float32) error
}

// EncodeItems encodes items with all that e knows of them. features is nil where the caller has none.
func EncodeItems(e Encoder, ids, texts []string, features TextFeatures, out []float32) error {
	switch e := e.(type) {
	case ItemEncoder:
		return e.EncodeItems(ids, texts, features, out)
	case FeatureEncoder:
		if features != nil {
			return e.EncodeFeatures(texts, features, out)
		}
	}
	return e.Encode(texts, out)
}
