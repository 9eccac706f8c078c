// Package hybrid is an encoder that keeps what a text says and adds what its links say: three views
// of the text side by side, turned onto the principal axes of their common space and cut to Dim:
//
//	h = Σ_f Ψ(T)_f · E_f         the trained view: a table of n-grams (package bag), trained on links
//	                             and clusters, or another encoder (package bert or wide)
//	l = Wᵀx                      the linear solution (package linear), x the projection of Ψ(T)
//	t = x_1 … x_d                the text itself (LSA)
//	Φ(T) = y/‖y‖,   y = J₁ᵀ h/‖h‖ + J₂ᵀ l/‖l‖ + J₃ᵀ t/‖t‖
//
// The trained view knows the links best, and forgets of a text what links do not need. The other
// two views keep it: a node without links, such as a new product, still lies near similar ones. J
// holds the first axes of a truncated singular value decomposition of the three views of the training
// nodes, in which both views of the text have the length TextWeight beside the trained view's 1. So
// the cosines of y are those of the three views, except for what the last axes hold. The dimensions
// are ordered, and mixed within groups (numeric.MixGroups): the first 64 or 128 can be used alone.
//
// Join fits J to a sample of views that Views.Of has written; New makes the encoder.
package hybrid

import (
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/linear"
	"giantstream/train/numeric"
)

// Kind is the encoder's name in configuration and artifacts.
const Kind = "hybrid"

// Views are the three views of a text.
type Views struct {
	Vectorizer train.Vectorizer
	Projection train.Projection // its rank is at least the dimension of the text's views
	// The trained view is that of Table or, if it is not nil, of Encoder.
	Table   *bag.Model
	Encoder train.Encoder
	// Solution is W, Rank×d, row-major. d is the dimension of both views of the text.
	Solution []float32
	// TextWeight is the length of the views l and t beside the trained view's, which is 1.
	TextWeight float32
}

// TrainedDim is the dimension of the trained view.
func (v Views) TrainedDim() int {
	if v.Encoder != nil {
		return v.Encoder.Dim()
	}
	return v.Table.Dim()
}

// TextDim is the dimension of each of the two views of the text.
func (v Views) TextDim() int { return len(v.Solution) / v.Projection.Dim() }

// Len is the length of the three views side by side.
func (v Views) Len() int { return v.TrainedDim() + 2*v.TextDim() }

// Of writes the views of texts, at their lengths, to out, a row of Len numbers each. A view of which
// a text has nothing is zero.
func (v Views) Of(texts []string, out []float32) error {
	n := v.Len()
	return v.each(texts, func(i int, views []float32) { copy(out[i*n:(i+1)*n], views) })
}

// each calls visit, concurrently, with the views of each text, which are valid during the call.
func (v Views) each(texts []string, visit func(i int, views []float32)) error {
	var trained []float32
	if v.Encoder != nil {
		trained = make([]float32, len(texts)*v.Encoder.Dim())
		if err := v.Encoder.Encode(texts, trained); err != nil {
			return err
		}
	}
	parallel.Each(len(texts), 32, 0, func(_, _, lo, hi int) {
		x, views := make([]float32, v.Projection.Dim()), make([]float32, v.Len())
		var psi sparse.Vector
		for i := lo; i < hi; i++ {
			psi = v.Vectorizer.Transform(texts[i], psi)
			v.write(i, trained, psi, x, views)
			visit(i, views)
		}
	})
	return nil
}

// write writes the views of text i, whose features are psi. x is room for their projection.
func (v Views) write(i int, trained []float32, psi sparse.Vector, x, out []float32) {
	m, d := v.TrainedDim(), v.TextDim()
	if v.Encoder != nil {
		copy(out, trained[i*m:(i+1)*m])
	} else {
		v.Table.Embed(psi, out[:m])
	}
	v.Projection.Apply(psi, x)
	linear.Project(v.Solution, x, out[m:m+d])
	copy(out[m+d:], x[:d])
	numeric.Normalize(out[m+d:])
	for k := range out[m:] {
		out[m+k] *= v.TextWeight
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

var _ train.Encoder = (*Encoder)(nil)

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
	if v.Encoder == nil {
		if _, err := bag.NewEncoder(v.Vectorizer, v.Table); err != nil {
			return nil, err
		}
	}
	return &Encoder{v, join, dim}, nil
}

// Kind returns the kind of the encoder that makes the trained view, or "hybrid" for a table.
func (e *Encoder) Kind() string {
	if e.views.Encoder != nil {
		return e.views.Encoder.Kind()
	}
	return Kind
}

// Dim returns the length of an embedding.
func (e *Encoder) Dim() int { return e.dim }

// Views returns the views, and Join the map from them to embeddings; neither is to be changed.
func (e *Encoder) Views() Views { return e.views }

// Join returns the map from views to embeddings, Len×Dim.
func (e *Encoder) Join() []float32 { return e.join }

// Close closes the encoder that makes the trained view, if there is one.
func (e *Encoder) Close() error {
	if e.views.Encoder == nil {
		return nil
	}
	return train.Close(e.views.Encoder)
}

// Encode implements train.Encoder.
func (e *Encoder) Encode(texts []string, out []float32) error {
	if len(out) != len(texts)*e.dim {
		return fmt.Errorf("encode: room for %d numbers, %d texts need %d", len(out), len(texts), len(texts)*e.dim)
	}
	return e.views.each(texts, func(i int, views []float32) {
		z := out[i*e.dim : (i+1)*e.dim]
		clear(z)
		for k, v := range views {
			numeric.Axpy(v, e.join[k*e.dim:(k+1)*e.dim], z)
		}
		numeric.Normalize(z)
	})
}
