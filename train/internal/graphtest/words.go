package graphtest

import (
	"slices"
	"strings"

	"giantstream/featurize/sparse"
	"giantstream/train/internal/rng"
)

// Words is a vectorizer that hashes words to so many features and counts them.
type Words int

// Dim returns the number of features.
func (n Words) Dim() int { return int(n) }

// Feature returns the feature of a word.
func (n Words) Feature(word string) int32 { return int32(rng.String(word) % uint64(n)) }

// Transform implements train.Vectorizer.
func (n Words) Transform(text string, dst sparse.Vector) sparse.Vector {
	dst.Index, dst.Value = dst.Index[:0], dst.Value[:0]
	for w := range strings.FieldsSeq(text) {
		f := n.Feature(w)
		at, known := slices.BinarySearch(dst.Index, f)
		if !known {
			dst.Index, dst.Value = slices.Insert(dst.Index, at, f), slices.Insert(dst.Value, at, 0)
		}
		dst.Value[at]++
	}
	return dst
}
