package wide

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/numeric"
)

// Deep is an encoder that a table can stand beside. Rotate multiplies its embeddings by a matrix.
type Deep interface {
	train.Encoder
	Rotate(axes []float32)
}

// Encoder is a text encoder with a table of n-grams beside it.
type Encoder struct {
	deep       Deep
	vectorizer train.Vectorizer
	table      *bag.Model
}

var _ train.Encoder = (*Encoder)(nil)

// New joins an encoder whose embeddings have length 1 to a table of vectors of
// the same dimension and the vectorizer that names its features.
func New(deep Deep, v train.Vectorizer, table *bag.Model) (*Encoder, error) {
	if table.Dim() != deep.Dim() {
		return nil, fmt.Errorf("wide: n-grams of dimension %d beside an encoder of %d", table.Dim(), deep.Dim())
	}
	if _, err := bag.NewEncoder(v, table); err != nil {
		return nil, err
	}
	return &Encoder{deep, v, table}, nil
}

// Kind returns the kind of the encoder beside the table.
func (e *Encoder) Kind() string { return e.deep.Kind() }

// Dim returns the length of an embedding.
func (e *Encoder) Dim() int { return e.deep.Dim() }

// Deep returns the encoder beside the table.
func (e *Encoder) Deep() train.Encoder { return e.deep }

// Table returns the n-grams' vectors.
func (e *Encoder) Table() *bag.Model { return e.table }

// Rotate multiplies every embedding by axes (Dim×Dim, orthogonal): those of the encoder beside the
// table, and the table. The encoder must not be in use.
func (e *Encoder) Rotate(axes []float32) {
	e.deep.Rotate(axes)
	e.table.Rotate(axes)
}

// Close closes the encoder beside the table.
func (e *Encoder) Close() error { return train.Close(e.deep) }

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	if err := e.deep.Encode(texts, out); err != nil {
		return err
	}
	return train.EncodeTexts(e.vectorizer, texts, e.Dim(), out, func() func(sparse.Vector, []float32) {
		return func(features sparse.Vector, out []float32) {
			e.table.Add(features, out)
			numeric.Normalize(out)
		}
	})
}
