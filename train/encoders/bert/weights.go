package bert

import (
	"fmt"

	"giantstream/train/encoders/bert/compute"
)

// weights are the numbers of a network, or their gradients.
type weights struct {
	embedding compute.Embedding
	layers    []layer
	pooler    *compute.Linear // nil: the model has none
}

// layer is one transformer layer, normalized after each half ("post-LN").
type layer struct {
	qkv, attend   *compute.Linear
	norm          compute.Norm
	widen, narrow *compute.Linear
	last          compute.Norm
}

// parameter is one array of weights.
type parameter struct {
	name   string
	buffer *compute.Buffer
	// decays: it is neither a bias nor of a normalization.
	decays bool
}

// parameters lists all arrays, in an order that depends on the shape alone.
func (w *weights) parameters() []parameter {
	var all []parameter
	matrix := func(name string, b *compute.Buffer) { all = append(all, parameter{name, b, true}) }
	vector := func(name string, b *compute.Buffer) { all = append(all, parameter{name, b, false}) }
	linear := func(name string, l *compute.Linear) {
		matrix(name+".weight", &l.Weight)
		vector(name+".bias", &l.Bias)
	}
	norm := func(name string, n *compute.Norm) {
		vector(name+".gain", &n.Gain)
		vector(name+".bias", &n.Bias)
	}
	matrix("words", &w.embedding.Words)
	matrix("positions", &w.embedding.Positions)
	matrix("types", &w.embedding.Types)
	norm("embedding.norm", &w.embedding.Norm)
	for i := range w.layers {
		l, name := &w.layers[i], fmt.Sprintf("layer.%d.", i)
		linear(name+"qkv", l.qkv)
		linear(name+"attend", l.attend)
		norm(name+"norm", &l.norm)
		linear(name+"widen", l.widen)
		linear(name+"narrow", l.narrow)
		norm(name+"last", &l.last)
	}
	if w.pooler != nil {
		linear("pooler", w.pooler)
	}
	return all
}

// zeros returns weights of the same shapes, all zero.
func (w *weights) zeros(be compute.Backend) *weights {
	z := &weights{embedding: w.embedding}
	linear := func(l *compute.Linear) *compute.Linear { c := *l; return &c }
	for _, l := range w.layers {
		l.qkv, l.attend, l.widen, l.narrow = linear(l.qkv), linear(l.attend), linear(l.widen), linear(l.narrow)
		z.layers = append(z.layers, l)
	}
	if w.pooler != nil {
		z.pooler = linear(w.pooler)
	}
	for _, p := range z.parameters() {
		*p.buffer = zeros(be, (*p.buffer).Len())
	}
	return z
}

func zeros(be compute.Backend, n int) compute.Buffer {
	b := be.New(n)
	be.Zero(b)
	return b
}
