package encoders

import (
	"math"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/encoders/parts"
	"giantstream/train/numeric"
)

// without is a vectorizer that passes over a feature.
type without struct {
	letters
	feature int32
}

func (w without) Transform(text string, dst sparse.Vector) (out sparse.Vector) {
	dst = w.letters.Transform(text, dst)
	for k, f := range dst.Index {
		if f != w.feature {
			out.Index, out.Value = append(out.Index, f), append(out.Value, dst.Value[k])
		}
	}
	return out
}

// unscaled is y of an item, in which h, l, t and y are divided by the lengths that they have with all n-grams of the
// text: computed as the package hybrid defines it.
func unscaled(e train.Encoder, v train.Vectorizer, id, text string) (y []float64) {
	psi, whole := v.Transform(text, sparse.Vector{}), letters{}.Transform(text, sparse.Vector{})
	linearly := func(psi sparse.Vector, weights []float32, dim int) []float64 {
		x, out := make([]float32, 4), make([]float64, dim)
		firstFour{}.Apply(psi, x)
		for k := range x {
			for i := range out {
				out[i] += float64(x[k]) * float64(weights[k*dim+i])
			}
		}
		return out
	}
	pooled := func(psi sparse.Vector, m *bag.Model) []float64 {
		out := make([]float64, m.Dim())
		for k, f := range psi.Index {
			for r, has := range m.Features() {
				for i := range out {
					if f == has {
						out[i] += float64(psi.Value[k]) * float64(m.Vectors()[r*m.Dim()+i])
					}
				}
			}
		}
		return out
	}
	identity := func(dim int) []float32 {
		w := make([]float32, 4*dim)
		for k := range dim {
			w[k*dim+k] = 1
		}
		return w
	}
	length := func(x []float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += v * v
		}
		if sum == 0 {
			return 1
		}
		return math.Sqrt(sum)
	}
	switch e := e.(type) {
	case *linear.LSA:
		return linearly(psi, identity(e.Dim()), e.Dim())
	case *linear.Encoder:
		return linearly(psi, e.Weights(), e.Dim())
	case *bag.Encoder:
		return pooled(psi, e.Model())
	case *hybrid.Encoder:
		views := e.Views()
		y = make([]float64, e.Dim())
		at := 0
		add := func(part, all []float64, weight float64) {
			by := length(all)
			for _, v := range part {
				for i := range y {
					y[i] += weight / by * v * float64(e.Join()[at*e.Dim()+i])
				}
				at++
			}
		}
		d, w := views.TextDim(), float64(views.TextWeight)
		add(pooled(psi, views.Table), pooled(whole, views.Table), 1)
		add(linearly(psi, views.Solution, d), linearly(whole, views.Solution, d), w)
		own := w
		if views.Model != nil {
			own /= math.Sqrt2
		}
		add(linearly(psi, identity(d), d), linearly(whole, identity(d), d), own)
		rest := make([]float32, views.Len())
		if err := views.WriteViews([]string{id}, []string{text}, train.FeaturesOf(letters{}, []string{text}),
			rest); err != nil {
			return nil
		}
		for _, v := range rest[at:] {
			add([]float64{float64(v)}, []float64{1}, 1)
		}
		return y
	}
	return nil
}

// The views add up to the cosine, and the n-grams to the views that are of n-grams. An n-gram whose weight is 0, all
// lengths being as they were, takes from the cosine what its part is. So it is for cut and rotated embeddings, too.
func TestPartsAddUp(t *testing.T) {
	r := numeric.NewRand(1, 'p')
	all := encoders(t)
	views := all[len(all)-1].(*hybrid.Encoder).Views()
	views.Model = opaque{}
	deep, err := hybrid.New(views, []float32{1, 0, 0, 1, 2, 0, 0, 2, 3, 1, -1, 3, 4, 0, 1, -2, 5, -5, 1, 2, -2, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, deep)
	for _, e := range encoders(t) {
		if turns, can := e.(interface{ Rotate([]float32) }); can {
			axes := make([]float32, e.Dim()*e.Dim())
			for k := range e.Dim() {
				axes[k*e.Dim()+(k+1)%e.Dim()] = -1
			}
			turns.Rotate(axes)
			all = append(all, e)
		}
	}
	checked := 0
	for range 200 {
		text := make([]byte, r.IntN(12))
		for k := range text {
			text[k] = "abcdefghij "[r.IntN(11)]
		}
		id := []string{"known", "unknown"}[r.IntN(2)]
		for _, e := range all {
			q := make([]float32, 1+r.IntN(e.Dim()))
			for k := range q {
				q[k] = float32(r.Float64()*2 - 1)
			}
			numeric.Normalize(q)
			all, err := parts.Split(e, []string{id}, []string{string(text)}, q)
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			p, z := all[0], make([]float32, e.Dim())
			if err := train.EncodeItems(e, []string{id}, []string{string(text)}, nil, z); err != nil {
				t.Fatal(err)
			}
			want := numeric.Cosine(q, z[:len(q)])
			if got := numeric.Cosine(p.Embedding, z[:len(q)]); got < 1-1e-6 && want != 0 {
				t.Fatalf("%s of %q: the embedding is another, cosine %g", e.Kind(), text, got)
			}
			sum, ofNGrams, named := 0.0, 0.0, 0.0
			largest := 1.0
			for _, v := range p.Views {
				largest = max(largest, math.Abs(v.Value))
				if sum += v.Value; v.OfNGrams {
					ofNGrams += v.Value
				}
			}
			for _, v := range p.Values {
				named += v
			}
			if largest > 20 {
				continue // the views cancel each other: what is left is of the last bits of floats
			}
			precision := 1e-5 * largest * largest
			if math.Abs(sum-want) > precision || math.Abs(named-ofNGrams) > precision {
				t.Fatalf("%s of %q: parts %+v, the cosine is %g", e.Kind(), text, p, want)
			}
			if !strings.ContainsAny(string(text), "abcdj") && id == "unknown" && e != train.Encoder(deep) && sum != 0 {
				t.Fatalf("%s of %q: parts %+v of nothing", e.Kind(), text, p)
			}
			y := unscaled(e, letters{}, id, string(text))
			for k, f := range p.NGrams {
				less := unscaled(e, without{feature: f}, id, string(text))
				lost, length := 0.0, 0.0
				for i := range q {
					lost, length = lost+float64(q[i])*(y[i]-less[i]), length+y[i]*y[i]
				}
				if lost /= math.Sqrt(length); length == 0 {
					lost = 0 // there is no cosine
				}
				if checked++; math.Abs(lost-p.Values[k]) > precision {
					t.Fatalf("%s of %q: without feature %d the cosine loses %g, its part is %g", e.Kind(), text, f, lost,
						p.Values[k])
				}
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d n-grams were checked", checked)
	}
}

// What is no sum is one part.
func TestPartsOfATransformer(t *testing.T) {
	e := opaque{}
	all, err := parts.Split(e, []string{"a"}, []string{"x"}, []float32{1})
	if err != nil || len(all) != 1 || len(all[0].Views) != 1 || len(all[0].NGrams) != 0 ||
		all[0].Views[0] != (parts.View{Name: "opaque", Value: 1}) {
		t.Errorf("%+v, %v", all, err)
	}
}

type opaque struct{}

func (opaque) Kind() string { return "opaque" }
func (opaque) Dim() int     { return 2 }
func (opaque) Encode(texts []string, out []float32) error {
	for i := range texts {
		copy(out[2*i:], []float32{0.6, 0.8})
	}
	return nil
}
