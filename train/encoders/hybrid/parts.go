package hybrid

import (
	"math"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/linear"
	"giantstream/train/encoders/parts"
	"giantstream/train/numeric"
)

// Names of the views in Parts, beside the kind of the transformer.
const (
	behaviourPart = "orders"
	vectorPart    = "vector." // and the vector's name
)

var _ parts.Encoder = (*Encoder)(nil)

// Parts implements parts.Encoder. h, l and t are sums over n-grams.
func (e *Encoder) Parts(ids, texts []string, q []float32) ([]parts.Cosine, error) {
	toward := linear.ApplyTo(e.join, e.dim, q) // J q: what a number of the views adds to ⟨q, y⟩
	h, d := e.views.Table.Dim(), e.views.TextDim()
	back := linear.ApplyTo(e.views.Solution, d, toward[h:h+d])
	all := make([]parts.Cosine, len(texts))
	features := train.FeaturesOf(e.views.Vectorizer, texts)
	return all, e.views.forEach(texts, features, e.views.ofItems(ids), func(i int, views []float32) {
		y := make([]float32, e.dim)
		for k, v := range views {
			numeric.Axpy(v, e.join[k*e.dim:(k+1)*e.dim], y)
		}
		p := &all[i]
		p.Embedding = y[:len(q)]
		scale := parts.Inverse(p.Embedding)
		at := 0
		e.views.eachView(func(name string, dim int, ofNGrams bool) {
			part := float64(numeric.Dot(views[at:at+dim], toward[at:at+dim])) * scale
			p.Views = append(p.Views, parts.View{Name: name, Value: part, OfNGrams: ofNGrams})
			at += dim
		})
		e.views.addNGrams(p, features(i, sparse.Vector{}), toward, back, scale)
	})
}

// eachView names the views in their order.
func (v Views) eachView(f func(name string, dim int, ofNGrams bool)) {
	f(bag.Kind, v.Table.Dim(), true)
	f(linear.Kind, v.TextDim(), true)
	f(linear.LSAKind, v.TextDim(), true)
	if v.Model != nil {
		f(v.Model.Kind(), v.ModelDim(), false)
	}
	if v.Behaviour != nil {
		f(behaviourPart, v.Behaviour.Dim(), false)
	}
	for _, own := range v.Vectors {
		f(vectorPart+own.Name, own.Items.Dim(), false)
	}
}

// addNGrams adds what n-grams add to h, l and t of the lengths that these have. back is W times the numbers of toward
// that are of l.
func (v Views) addNGrams(p *parts.Cosine, psi sparse.Vector, toward, back []float32, scale float64) {
	n, d := v.Table.Dim(), v.TextDim()
	h, l, x := make([]float32, n), make([]float32, d), make([]float32, v.Projection.Dim())
	v.Table.Pool(psi, h)
	v.Projection.Apply(psi, x)
	linear.Map(v.Solution, x, l)
	weight := float64(v.TextWeight)
	own := weight
	if v.Model != nil {
		own /= math.Sqrt2
	}
	ofH, ofL, ofT := scale*parts.Inverse(h), scale*weight*parts.Inverse(l), scale*own*parts.Inverse(x[:d])
	p.AddNGrams(psi, func(one sparse.Vector) float64 {
		v.Table.Pool(one, h)
		v.Projection.Apply(one, x)
		return ofH*float64(numeric.Dot(h, toward[:n])) + ofL*float64(numeric.Dot(x, back)) +
			ofT*float64(numeric.Dot(x[:d], toward[n+d:n+2*d]))
	})
}
