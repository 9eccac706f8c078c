// Package hybrid is an encoder that keeps what a text says and adds what its links say: views of the
// text side by side, turned onto the principal axes of their common space and cut to Dim:
//
//	h = Σ_f Ψ(T)_f · E_f         a table of n-grams (package bag), trained on links and clusters
//	l = Wᵀx                      the linear solution (package linear), x the projection of Ψ(T)
//	t = x_1 … x_d                the text itself (LSA)
//	p                            the text itself as a transformer says it (package bert), if there is one
//	z                            what the item is ordered with (ItemView), if there are orders
//	v₁, v₂, …                    the item's own vectors, as links weigh their directions (VectorView), if it has some
//	Φ(T) = y/‖y‖,   y = J₁ᵀ h/‖h‖ + J₂ᵀ l/‖l‖ + J₃ᵀ t/‖t‖ + J₄ᵀ p/‖p‖ + J₅ᵀ z + J₆ᵀ v₁ + …
//
// The table knows the links best, and forgets of a text what links do not need. The other views keep
// it: a node without links, such as a new product, still lies near similar ones. J holds the first
// axes of a truncated singular value decomposition of the views of the training nodes, in which l has
// the length TextWeight beside the table's 1, and t and p together have it: t alone, or each TextWeight/√2.
// So the cosines of y are those of the views, except for what the last axes hold. The dimensions
// are ordered, and mixed within groups (numeric.MixGroups): the first 64 or 128 can be used alone.
//
// The view z belongs to an item, not to its text. It grows with the orders of the item, so that the embedding moves
// from the text to the behaviour. The views v belong to an item, too, and are there or not. A text that is no known
// item's has neither, unless it comes with a vector of its own (EncodeTexts).
//
// Join fits J to a sample of views that Views.WriteViews has written; New makes the encoder.
package hybrid

import (
	"fmt"
	"math"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/linear"
	"giantstream/train/numeric"
)

// Kind is the encoder's name in configuration and artifacts.
const Kind = "hybrid"

// Views are the views of a text.
type Views struct {
	Vectorizer train.Vectorizer
	Projection train.Projection // its rank is at least the dimension of the views l and t
	Table      *bag.Model
	// Solution is W, Rank×d, row-major. d is the dimension of the views l and t.
	Solution []float32
	// TextWeight is the length of l beside the table's view, which is 1, and of t and p together.
	TextWeight float32
	// Model, if not nil, is the transformer. Its embeddings have length 1.
	Model train.Encoder
	// Behaviour, if not nil, is what items are ordered with, and Directions, if known, what its rows are made by.
	Behaviour  *ItemView
	Directions *Directions
	// Vectors are what the items' own vectors say, in ascending order of the names.
	Vectors []VectorView
}

// TextDim is the dimension of each of the views l and t.
func (v Views) TextDim() int { return len(v.Solution) / v.Projection.Dim() }

// ModelDim is the dimension of the view p, 0 for none.
func (v Views) ModelDim() int {
	if v.Model == nil {
		return 0
	}
	return v.Model.Dim()
}

// Len is the length of the views side by side.
func (v Views) Len() int {
	n := v.textLen() + v.Behaviour.Dim()
	for _, own := range v.Vectors {
		n += own.Items.Dim()
	}
	return n
}

// textLen is the length of the views of the text.
func (v Views) textLen() int { return v.Table.Dim() + 2*v.TextDim() + v.ModelDim() }

// WriteViews writes the views of items to out, a row of Len numbers for each. A view in which an item has nothing is
// zero.
func (v Views) WriteViews(ids, texts []string, features train.TextFeatures, out []float32) error {
	n := v.Len()
	return v.forEach(texts, features, v.ofItems(ids), func(i int, views []float32) {
		copy(out[i*n:(i+1)*n], views)
	})
}

// beside writes the views of an item that are not of its text beside those that are. u is room for the longest row of
// a vector.
type beside func(i int, u, views []float32)

// ofItems writes the views of the items with these ids; without ids nothing.
func (v Views) ofItems(ids []string) beside {
	if ids == nil {
		return nil
	}
	return func(i int, u, views []float32) { v.writeItem(ids[i], u, views) }
}

// forEach calls visit with the views of each item, on several goroutines. Without more, the items are their texts
// alone. The views are valid during the call.
func (v Views) forEach(texts []string, features train.TextFeatures, more beside,
	visit func(i int, views []float32)) error {
	m := v.ModelDim()
	p := make([]float32, len(texts)*m)
	if v.Model != nil {
		if err := v.Model.Encode(texts, p); err != nil {
			return err
		}
	}
	parallel.ForEach(len(texts), 32, 0, func(_, _, lo, hi int) {
		x, views := make([]float32, v.Projection.Dim()), make([]float32, v.Len())
		longest := 0
		for _, own := range v.Vectors {
			longest = max(longest, own.Items.Dim())
		}
		u := make([]float32, longest)
		var psi sparse.Vector
		for i := lo; i < hi; i++ {
			psi = features(i, psi)
			v.write(psi, p[i*m:(i+1)*m], x, views)
			if more != nil {
				more(i, u, views)
			}
			visit(i, views)
		}
	})
	return nil
}

// write writes the views of a text from its features psi and its view p. x is room for the projection.
func (v Views) write(psi sparse.Vector, p, x, out []float32) {
	h, d := v.Table.Dim(), v.TextDim()
	l, t := out[h:h+d], out[h+d:h+2*d]
	v.Table.Embed(psi, out[:h])
	v.Projection.Apply(psi, x)
	linear.Project(v.Solution, x, l)
	copy(t, x[:d])
	numeric.Normalize(t)
	scale(l, v.TextWeight)
	own := v.TextWeight
	if v.Model != nil {
		own /= math.Sqrt2
		copy(out[h+2*d:], p)
		scale(out[h+2*d:h+2*d+len(p)], own)
	}
	scale(t, own)
}

// writeItem writes the views of an item that are not of its text, each of its weight times the length of those that
// are at most.
func (v Views) writeItem(id string, u, views []float32) {
	n := v.textLen()
	if len(views) == n {
		return
	}
	length, rest := lengthOf(views[:n]), views[n:]
	next := func(of *ItemView) []float32 {
		row := rest[:of.Dim()]
		rest = rest[len(row):]
		return row
	}
	if v.Behaviour != nil {
		row := next(v.Behaviour)
		v.Behaviour.Row(id, row)
		scale(row, length*v.Behaviour.weight)
	}
	for _, own := range v.Vectors {
		row := next(own.Items)
		own.write(id, u, row)
		scale(row, length*own.Items.weight)
	}
}

// Beside is how many views there are that are not of a text: Behaviour, if there is one, and Vectors.
func (v Views) Beside() (n int) {
	if v.Behaviour != nil {
		n++
	}
	return n + len(v.Vectors)
}

// SquaresBeside writes, for each of these views, the square of its length in an item, whose views of the text have the
// length 1 together: 0 where the item has none.
func (v Views) SquaresBeside(id string, out []float32) {
	if v.Behaviour != nil {
		out[0] = v.Behaviour.square(id)
		out = out[1:]
	}
	for k, own := range v.Vectors {
		out[k] = 0
		if own.Items.row(id) != nil {
			out[k] = own.Items.weight * own.Items.weight
		}
	}
}

// lengthOf is the length of the views of a text, and 1 for a text without a known n-gram.
func lengthOf(views []float32) float32 {
	if length := math.Sqrt(float64(numeric.Dot(views, views))); length > 0 {
		return float32(length)
	}
	return 1
}

func scale(x []float32, by float32) {
	for k := range x {
		x[k] *= by
	}
}

// Join returns the map (Len×dim, row-major) from views to embeddings: the first dim principal axes
// of a sample of views (rows of length n), mixed within groups.
func Join(sample []float32, n, dim int) ([]float32, error) {
	axes, err := numeric.PrincipalAxes(sample, n)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	join := make([]float32, 0, n*dim)
	for i := range n {
		join = append(join, axes[i*n:i*n+dim]...)
	}
	numeric.MixGroups(join, dim)
	return join, nil
}

// Encoder is Φ. A text without a known n-gram gets the zero vector.
type Encoder struct {
	views Views
	join  []float32
	dim   int
}

var _ train.ItemEncoder = (*Encoder)(nil)

// New joins views by the map that Join returned.
func New(v Views, join []float32, dim int) (*Encoder, error) {
	rank := v.Projection.Dim()
	if rank < 1 || len(v.Solution) == 0 || len(v.Solution)%rank != 0 || len(v.Solution) > rank*rank {
		return nil, fmt.Errorf("hybrid: %d weights and a projection of %d give no view of the text", len(v.Solution),
			rank)
	}
	if dim < 1 || len(join) != v.Len()*dim {
		return nil, fmt.Errorf("hybrid: %d numbers do not map views of %d numbers to %d", len(join), v.Len(), dim)
	}
	if d := v.Directions; d != nil && d.Dim() != v.Behaviour.Dim() {
		return nil, fmt.Errorf("hybrid: %d directions of rows of %d numbers", d.Dim(), v.Behaviour.Dim())
	}
	for _, own := range v.Vectors {
		if d := own.Items.Dim(); own.Map.Dim() != d || len(own.Metric) != d*d {
			return nil, fmt.Errorf("hybrid: the vector %s is mapped to %d numbers, its items have %d, its metric %d",
				own.Name, own.Map.Dim(), d, len(own.Metric))
		}
	}
	if _, err := bag.NewEncoder(v.Vectorizer, v.Table); err != nil {
		return nil, err
	}
	return &Encoder{v, join, dim}, nil
}

// Kind returns the kind of the transformer, or "hybrid" without one.
func (e *Encoder) Kind() string {
	if e.views.Model != nil {
		return e.views.Model.Kind()
	}
	return Kind
}

// Dim returns the length of an embedding.
func (e *Encoder) Dim() int { return e.dim }

// Views returns the views, and Join the map from them to embeddings; neither is to be changed.
func (e *Encoder) Views() Views { return e.views }

// Join returns the map from views to embeddings, Len×Dim.
func (e *Encoder) Join() []float32 { return e.join }

// Rotate multiplies every embedding by axes (Dim×Dim, orthogonal). The encoder must not be in use.
func (e *Encoder) Rotate(axes []float32) { numeric.Rotate(e.join, axes, e.dim) }

// Close closes the encoder that makes the trained view, if there is one.
func (e *Encoder) Close() error {
	if e.views.Model == nil {
		return nil
	}
	return train.Close(e.views.Model)
}

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	return e.EncodeFeatures(texts, train.FeaturesOf(e.views.Vectorizer, texts), out)
}

// EncodeFeatures implements train.FeatureEncoder.
func (e *Encoder) EncodeFeatures(texts []string, features train.TextFeatures, out []float32) error {
	return e.encode(texts, features, nil, out)
}

// EncodeItems implements train.ItemEncoder.
func (e *Encoder) EncodeItems(ids, texts []string, features train.TextFeatures, out []float32) error {
	if len(ids) != len(texts) {
		return fmt.Errorf("encode: %d ids of %d texts", len(ids), len(texts))
	}
	if features == nil {
		features = train.FeaturesOf(e.views.Vectorizer, texts)
	}
	return e.encode(texts, features, e.views.ofItems(ids), out)
}

func (e *Encoder) encode(texts []string, features train.TextFeatures, more beside, out []float32) error {
	if len(out) != len(texts)*e.dim {
		return fmt.Errorf("encode: room for %d numbers, %d texts need %d", len(out), len(texts), len(texts)*e.dim)
	}
	return e.views.forEach(texts, features, more, func(i int, views []float32) {
		z := out[i*e.dim : (i+1)*e.dim]
		clear(z)
		for k, v := range views {
			numeric.Axpy(v, e.join[k*e.dim:(k+1)*e.dim], z)
		}
		numeric.Normalize(z)
	})
}
