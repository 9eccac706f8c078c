package wide

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/internal/encoding"
	"giantstream/train/internal/vector"
)

// Encoder is a text encoder with a table of n-grams beside it.
type Encoder struct {
	deep       train.Encoder
	vectorizer train.Vectorizer
	table      *bag.Model
}

var _ train.Encoder = (*Encoder)(nil)

// New joins an encoder whose embeddings have length 1 to a table of vectors of
// the same dimension and the vectorizer that names its features.
func New(deep train.Encoder, v train.Vectorizer, table *bag.Model) (*Encoder, error) {
	if table.Dim() != deep.Dim() {
		return nil, fmt.Errorf("wide: n-grams of dimension %d beside an encoder of %d", table.Dim(), deep.Dim())
	}
	if _, err := bag.NewEncoder(v, table); err != nil {
		return nil, err
	}
	return &Encoder{deep, v, table}, nil
}

// Kind returns that of the encoder beside the table.
func (e *Encoder) Kind() string { return e.deep.Kind() }

// Dim returns the length of an embedding.
func (e *Encoder) Dim() int { return e.deep.Dim() }

// Deep returns the encoder beside the table.
func (e *Encoder) Deep() train.Encoder { return e.deep }

// Table returns the n-grams' vectors.
func (e *Encoder) Table() *bag.Model { return e.table }

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	if err := e.deep.Encode(texts, out); err != nil {
		return err
	}
	return encoding.Texts(e.vectorizer, texts, e.Dim(), out, func() func(sparse.Vector, []float32) {
		return func(features sparse.Vector, out []float32) {
			e.table.Add(features, out)
			vector.Normalize(out)
		}
	})
}
