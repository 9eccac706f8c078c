package bag

import (
	"fmt"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/encoders/parts"
	"giantstream/train/numeric"
)

// Kind is the encoder's name in configuration and artifacts.
const Kind = "bag"

// Model is the trained table: which features have a vector, and the vectors.
type Model struct{ table *table }

// NewModel returns a model of vectors for the given features, which ascend
// and are below cols, the vectorizer's number of features.
func NewModel(features []int32, vectors []float32, cols, dim int) (*Model, error) {
	if dim < 1 || len(vectors) != len(features)*dim {
		return nil, fmt.Errorf("bag: %d numbers are not %d vectors of dimension %d", len(vectors), len(features), dim)
	}
	for r, f := range features {
		if f < 0 || int(f) >= cols || (r > 0 && f <= features[r-1]) {
			return nil, fmt.Errorf("bag: feature %d of row %d is not ascending below %d", f, r, cols)
		}
	}
	t := newTable(slices.Clone(features), cols, dim)
	t.vectors = vectors
	return &Model{t}, nil
}

// Dim returns the length of an embedding.
func (m *Model) Dim() int { return m.table.dim }

// Features returns the features that have a vector, not to be changed.
func (m *Model) Features() []int32 { return m.table.features }

// Vectors returns the table, len(Features())×Dim, not to be changed.
func (m *Model) Vectors() []float32 { return m.table.vectors }

// Rotate multiplies every vector, and with it every embedding, by axes (Dim×Dim, orthogonal).
func (m *Model) Rotate(axes []float32) { numeric.Rotate(m.table.vectors, axes, m.table.dim) }

// Embed writes Φ of a text with features v to out.
func (m *Model) Embed(v sparse.Vector, out []float32) { m.table.embed(v, out) }

// Pool writes h of a text with features v to out: Φ before it is scaled to length 1.
func (m *Model) Pool(v sparse.Vector, out []float32) {
	clear(out)
	m.table.add(v, out)
}

// EmbedAll returns the embeddings of all rows of x (Ψ of texts).
func (m *Model) EmbedAll(x Features, workers int) []float32 {
	rows, _ := x.Size()
	out := make([]float32, rows*m.table.dim)
	parallel.ForEach(rows, 64, workers, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			m.table.embed(x.Row(i), out[i*m.table.dim:(i+1)*m.table.dim])
		}
	})
	return out
}

// Encoder is a Model behind its vectorizer. A text without an n-gram that has a vector gets the
// zero vector.
type Encoder struct {
	vectorizer train.Vectorizer
	model      *Model
}

var (
	_ train.FeatureEncoder = (*Encoder)(nil)
	_ parts.Encoder        = (*Encoder)(nil)
)

// NewEncoder joins a model to the vectorizer it was trained on.
func NewEncoder(v train.Vectorizer, m *Model) (*Encoder, error) {
	if v.Dim() != len(m.table.row) {
		return nil, fmt.Errorf("bag: the model was trained on %d features, the vectorizer has %d",
			len(m.table.row), v.Dim())
	}
	return &Encoder{v, m}, nil
}

// Kind returns "bag".
func (e *Encoder) Kind() string { return Kind }

// Dim returns the length of an embedding.
func (e *Encoder) Dim() int { return e.model.Dim() }

// Model returns the trained table.
func (e *Encoder) Model() *Model { return e.model }

// Rotate multiplies every embedding by axes (Dim×Dim, orthogonal). The encoder must not be in use.
func (e *Encoder) Rotate(axes []float32) { e.model.Rotate(axes) }

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	return e.EncodeFeatures(texts, train.FeaturesOf(e.vectorizer, texts), out)
}

// EncodeFeatures implements train.FeatureEncoder.
func (e *Encoder) EncodeFeatures(texts []string, features train.TextFeatures, out []float32) error {
	return train.EncodeFeatures(len(texts), features, e.Dim(), out, func() func(sparse.Vector, []float32) {
		return e.model.Embed
	})
}

// Parts implements parts.Encoder.
func (e *Encoder) Parts(_, texts []string, q []float32) ([]parts.Cosine, error) {
	h := make([]float32, e.Dim())
	return parts.OfNGrams(Kind, e.vectorizer, e.Dim(), e.model.Pool, func(psi sparse.Vector) float32 {
		e.model.Pool(psi, h)
		return numeric.Dot(h[:len(q)], q)
	}, texts, q), nil
}

// Start returns the bag that training would start from at a linear solution (Rank×dim): a vector
// for each of the at most maxRows n-grams that are in most rows of x. Without weights, embeddings
// are the first dim numbers of the projection: those of linear.LSA, apart from the n-grams left
// out.
func Start(x Features, p train.Projection, weights []float32, dim, maxRows, workers int) (*Model, error) {
	rank := p.Dim()
	if weights == nil {
		if dim > rank {
			return nil, fmt.Errorf("bag: %d dimensions of a projection that has %d", dim, rank)
		}
		weights = make([]float32, rank*dim)
		for k := range dim {
			weights[k*dim+k] = 1
		}
	}
	if dim < 1 || len(weights) != rank*dim || maxRows < 1 {
		return nil, fmt.Errorf("bag: %d weights are not a linear solution from %d to %d dimensions for %d rows",
			len(weights), rank, dim, maxRows)
	}
	_, cols := x.Size()
	t := newTable(chooseFeatures(x, maxRows), cols, dim)
	t.linearStart(p, weights, workers)
	return &Model{t}, nil
}
