package hybrid

import (
	"fmt"
	"math"
	"slices"

	"giantstream/train"
	"giantstream/train/numeric"
)

// VectorView is a view of items that a vector of their own gives, such as that of a picture.
type VectorView struct {
	// Name is that of the vector, and Input the number of the input that states it.
	Name  string
	Input int32
	// Map makes rows of vectors.
	Map *VectorMap
	// Items are the items that have the vector, with their rows u.
	Items *ItemView
	// Metric is M, Dim×Dim: what the rows are multiplied by, as links say which of their directions count.
	Metric []float32
}

// write writes the view of an item, Mᵀu of the length 1, zeros if it has none. u is room for a row.
func (v VectorView) write(id string, u, out []float32) {
	v.turn(v.Items.row(id), u, out)
}

// turn writes the view of a row, zeros for nil.
func (v VectorView) turn(row []uint16, u, out []float32) {
	u = u[:len(out)]
	widen(row, u)
	clear(out)
	for k, x := range u {
		if x != 0 {
			numeric.Axpy(x, v.Metric[k*len(out):(k+1)*len(out)], out)
		}
	}
	numeric.Normalize(out)
}

// VectorMap maps a vector x of some length to a row of length 1:
//
//	u/‖u‖,   u = Vᵀ(x/‖x‖ − m)
//
// m is the mean direction of many vectors, which models give to all they see, and V are some axes.
type VectorMap struct {
	mean, axes []float32
}

// NewVectorMap makes a map of the mean m and the axes V, a row for each number of a vector.
func NewVectorMap(mean, axes []float32) (*VectorMap, error) {
	if len(mean) == 0 || len(axes) == 0 || len(axes)%len(mean) != 0 {
		return nil, fmt.Errorf("hybrid: %d numbers are no axes of vectors of %d", len(axes), len(mean))
	}
	return &VectorMap{mean, axes}, nil
}

// Len is the length of a vector.
func (m *VectorMap) Len() int { return len(m.mean) }

// Dim is the length of a row.
func (m *VectorMap) Dim() int { return len(m.axes) / len(m.mean) }

// Mean is the mean direction, not to be changed.
func (m *VectorMap) Mean() []float32 { return m.mean }

// Axes are a row for each number of a vector, not to be changed.
func (m *VectorMap) Axes() []float32 { return m.axes }

// Centre writes the direction of a vector without the mean, and says whether it has one.
func (m *VectorMap) Centre(x, out []float32) bool {
	length := 0.0 // a float16's numbers may overflow the square of a float32
	for _, v := range x {
		length += float64(float64(v) * float64(v))
	}
	if length = math.Sqrt(length); !(length > 0) || math.IsInf(length, 0) {
		return false
	}
	for k, v := range x {
		out[k] = float32(float64(v)/length) - m.mean[k]
	}
	return true
}

// Row writes the row of a vector as bfloat16, and says whether it has one. room is for Len + Dim numbers.
func (m *VectorMap) Row(x, room []float32, out []uint16) bool {
	centred, u := room[:m.Len()], room[m.Len():m.Len()+m.Dim()]
	if len(x) != m.Len() || !m.Centre(x, centred) {
		return false
	}
	clear(u)
	for k, v := range centred {
		numeric.Axpy(v, m.axes[k*len(u):(k+1)*len(u)], u)
	}
	if numeric.Normalize(u) == 0 {
		return false
	}
	for k, v := range u {
		out[k] = numeric.BF16(v)
	}
	return true
}

// EncodeTexts encodes texts that are no items', each as a new item's that has the vector beside its text in the view
// with this name and no other; nil is none.
func (e *Encoder) EncodeTexts(texts []string, name string, vectors [][]float32, out []float32) error {
	if len(vectors) != len(texts) {
		return fmt.Errorf("encode: %d vectors of %d texts", len(vectors), len(texts))
	}
	n := e.views.textLen()
	at, which := n+e.views.Behaviour.Dim(), 0
	for ; which < len(e.views.Vectors) && e.views.Vectors[which].Name != name; which++ {
		at += e.views.Vectors[which].Items.Dim()
	}
	if which == len(e.views.Vectors) {
		return fmt.Errorf("encode: there is no view of the vector %s", name)
	}
	own := e.views.Vectors[which]
	more := func(i int, u, views []float32) {
		row, room := make([]uint16, own.Map.Dim()), make([]float32, own.Map.Len()+own.Map.Dim())
		if !own.Map.Row(vectors[i], room, row) {
			row = nil
		}
		view := views[at : at+own.Items.Dim()]
		own.turn(row, u, view)
		scale(view, lengthOf(views[:n])*own.Items.weight)
	}
	return e.encode(texts, train.FeaturesOf(e.views.Vectorizer, texts), more, out)
}

// Following returns the same encoder, in which Follow lets items have other vectors, and FollowOrders other rows of
// Behaviour. It takes as much for each of them as the views do.
func (e *Encoder) Following() *Encoder {
	f := &Encoder{e.views, e.join, e.dim}
	f.views.Behaviour = e.views.Behaviour.following()
	f.views.Vectors = slices.Clone(e.views.Vectors)
	for k := range f.views.Vectors {
		f.views.Vectors[k].Items = f.views.Vectors[k].Items.following()
	}
	return f
}

// Follow lets an item have the vectors that an input states, by name, and no others of that input. It is a method of
// what Following returns. Texts may be encoded beside it.
func (e *Encoder) Follow(id string, input int32, vectors map[string][]float32) {
	for _, own := range e.views.Vectors {
		if own.Input != input {
			continue
		}
		row, room := make([]uint16, own.Map.Dim()), make([]float32, own.Map.Len()+own.Map.Dim())
		if x, has := vectors[own.Name]; !has || !own.Map.Row(x, room, row) {
			row = nil
		}
		own.Items.follow(id, row)
	}
}
