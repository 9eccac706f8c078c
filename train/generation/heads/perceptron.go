package heads

import (
	"math"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// predictBlock is how many nodes are scored at a time.
const predictBlock = 256

// perceptron classifies nodes by rows of x: with a hidden layer an MLP, without
// a logistic regression.
type perceptron struct {
	x       []float32 // n×dim
	dim     int
	hidden  *dense // nil for a logistic regression
	out     *dense
	dropout float64
	seed    uint64
	workers int

	// Of the last forward: inputs, hidden layer, scores; and the gradient of the hidden layer.
	in, h, scores, dh []float32
}

func newPerceptron(x []float32, dim, hidden, classes int, o Options) *perceptron {
	r := numeric.NewRand(o.Seed, streamStart)
	p := &perceptron{x: x, dim: dim, dropout: o.Dropout, seed: o.Seed, workers: o.Workers}
	last := dim
	if hidden > 0 {
		p.hidden, last = newDense(dim, hidden, dim, &r), hidden
	}
	p.out = newDense(last, classes, last, &r)
	return p
}

func (p *perceptron) parameters() []*parameter {
	if p.hidden == nil {
		return []*parameter{p.out.w, p.out.b}
	}
	return []*parameter{p.hidden.w, p.hidden.b, p.out.w, p.out.b}
}

func (p *perceptron) forward(nodes []int32, step int64) []float32 {
	p.in = gather(p.x, p.dim, nodes, grown(p.in, len(nodes)*p.dim))
	p.scores = grown(p.scores, len(nodes)*p.out.out)
	last := p.in
	if p.hidden != nil {
		p.h = grown(p.h, len(nodes)*p.hidden.out)
		p.hidden.forward(p.in, p.h)
		r := numeric.NewRand(p.seed, streamDrop, uint64(step))
		drop(p.h, p.dropout, &r)
		last = p.h
	}
	p.out.forward(last, p.scores)
	return p.scores
}

func (p *perceptron) backward(grad []float32) {
	if p.hidden == nil {
		p.out.backward(p.in, grad, nil)
		return
	}
	p.dh = grown(p.dh, len(p.h))
	p.out.backward(p.h, grad, p.dh)
	undrop(p.h, p.dh, p.dropout)
	p.hidden.backward(p.in, p.dh, nil)
}

func (p *perceptron) predict(nodes []int32) []float32 {
	scores := make([]float32, len(nodes)*p.out.out)
	parallel.ForEach(len(nodes), predictBlock, p.workers, func(_, _, lo, hi int) {
		last := gather(p.x, p.dim, nodes[lo:hi], make([]float32, (hi-lo)*p.dim))
		if p.hidden != nil {
			h := make([]float32, (hi-lo)*p.hidden.out)
			p.hidden.forward(last, h)
			rectify(h)
			last = h
		}
		p.out.forward(last, scores[lo*p.out.out:hi*p.out.out])
	})
	return scores
}

// gather copies the nodes' rows of x to out.
func gather(x []float32, dim int, nodes []int32, out []float32) []float32 {
	for k, i := range nodes {
		copy(out[k*dim:(k+1)*dim], x[int(i)*dim:int(i+1)*dim])
	}
	return out
}

// smooth returns S·x with S = D^-½·(A+I)·D^-½, D the degrees of A+I (Wu et al.
// 2019, equation 4). Of a directed graph it takes the row's neighbours and
// the rows' degrees.
func smooth(x []float32, dim int, a *sparse.Matrix, workers int) []float32 {
	scale := make([]float32, a.Rows)
	for i := range scale {
		scale[i] = float32(1 / math.Sqrt(float64(1+len(a.Row(i).Index))))
	}
	out := make([]float32, len(x))
	parallel.ForEach(a.Rows, 64, workers, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := out[i*dim : (i+1)*dim]
			numeric.Axpy(scale[i]*scale[i], x[i*dim:(i+1)*dim], row)
			for _, j := range a.Row(i).Index {
				numeric.Axpy(scale[i]*scale[j], x[int(j)*dim:int(j+1)*dim], row)
			}
		}
	})
	return out
}
