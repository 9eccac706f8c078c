// Package encoding runs an encoder's arithmetic over many texts.
package encoding

import (
	"fmt"

	"giantstream/featurize/parallel"
	"giantstream/featurize/sparse"
	"giantstream/train"
)

// Texts writes the embedding of texts[i] to out[i*dim : (i+1)*dim]. start is
// called once per block of texts and returns the function that embeds one text's
// features, so that it can own scratch memory.
func Texts(v train.Vectorizer, texts []string, dim int, out []float32, start func() func(features sparse.Vector, out []float32)) error {
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
