package heads

import (
	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// sage is GraphSAGE with the mean as aggregator and two layers. A layer's W·x_v
// + U·mean is one product with the two side by side.
type sage struct {
	// x is n×2dim: a node's input beside the mean of its neighbours' inputs.
	x             []float32
	dim           int
	a             *sparse.Matrix
	hidden, out   *dense // 2dim → width, 2width → classes
	fanout        [2]int
	dropout       float64
	seed          uint64
	workers       int
	all           []float32 // hidden layer of all nodes, for predict
	sampled       sampled
	in, h, second []float32 // of the last forward: inputs of both layers, hidden layer
	scores, dh    []float32
	dsecond       []float32
}

func newSage(x []float32, dim int, a *sparse.Matrix, classes int, o Options) *sage {
	r := numeric.NewRand(o.Seed, streamStart)
	s := &sage{
		dim: dim, a: a, hidden: newDense(2*dim, o.Hidden, dim, &r), out: newDense(2*o.Hidden, classes, o.Hidden, &r),
		fanout: o.Fanout, dropout: o.Dropout, seed: o.Seed, workers: o.Workers,
		sampled: newSampled(a.Rows), x: make([]float32, 2*len(x)),
	}
	parallel.ForEach(a.Rows, 64, o.Workers, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := s.x[2*i*dim : 2*(i+1)*dim]
			copy(row, x[i*dim:(i+1)*dim])
			mean(row[dim:], x, dim, a.Row(i).Index)
		}
	})
	return s
}

// mean writes the mean of the given rows of x, each dim of stride numbers, to out.
func mean(out, x []float32, stride int, rows []int32) {
	clear(out)
	for _, j := range rows {
		at := int(j) * stride
		numeric.Axpy(1/float32(len(rows)), x[at:at+len(out)], out)
	}
}

func (s *sage) parameters() []*parameter {
	return []*parameter{s.hidden.w, s.hidden.b, s.out.w, s.out.b}
}

// forward computes the hidden layer of the nodes and of the neighbours sampled
// for them, each from sampled neighbours of its own.
func (s *sage) forward(nodes []int32, step int64) []float32 {
	d, w := s.dim, s.hidden.out
	s.sampled.draw(s.a, nodes, s.fanout[0], numeric.NewRand(s.seed, streamSample, uint64(step), 0))
	reached := s.sampled.reached
	s.in = grown(s.in, len(reached)*2*d)
	from := numeric.NewRand(s.seed, streamSample, uint64(step), 1)
	parallel.ForEach(len(reached), 64, s.workers, func(_, _, lo, hi int) {
		var neighbours []int32
		for k := lo; k < hi; k++ {
			v := int(reached[k])
			row := s.in[2*k*d : 2*(k+1)*d]
			copy(row[:d], s.x[2*v*d:(2*v+1)*d])
			neighbours = choose(neighbours[:0], s.a.Row(v).Index, s.fanout[1], fork(from, v))
			mean(row[d:], s.x, 2*d, neighbours)
		}
	})
	s.h = grown(s.h, len(reached)*w)
	s.hidden.forward(s.in, s.h)
	r := numeric.NewRand(s.seed, streamDrop, uint64(step))
	drop(s.h, s.dropout, &r)

	s.second = grown(s.second, len(nodes)*2*w)
	for k := range nodes {
		row := s.second[2*k*w : 2*(k+1)*w]
		copy(row[:w], s.h[k*w:(k+1)*w]) // the nodes are the first reached
		mean(row[w:], s.h, w, s.sampled.neighboursOf(k))
	}
	s.scores = grown(s.scores, len(nodes)*s.out.out)
	s.out.forward(s.second, s.scores)
	return s.scores
}

func (s *sage) backward(grad []float32) {
	w := s.hidden.out
	s.dsecond = grown(s.dsecond, len(s.second))
	s.out.backward(s.second, grad, s.dsecond)
	s.dh = grown(s.dh, len(s.h))
	clear(s.dh)
	for k := range len(s.second) / (2 * w) {
		row := s.dsecond[2*k*w : 2*(k+1)*w]
		numeric.Axpy(1, row[:w], s.dh[k*w:(k+1)*w])
		neighbours := s.sampled.neighboursOf(k)
		for _, u := range neighbours {
			at := int(u) * w
			numeric.Axpy(1/float32(len(neighbours)), row[w:], s.dh[at:at+w])
		}
	}
	undrop(s.h, s.dh, s.dropout)
	s.hidden.backward(s.in, s.dh, nil)
}

// predict takes all neighbours: the hidden layer of all nodes, then the scores
// of those asked for.
func (s *sage) predict(nodes []int32) []float32 {
	n, d, w := s.a.Rows, s.dim, s.hidden.out
	s.all = grown(s.all, n*w)
	parallel.ForEach(n, predictBlock, s.workers, func(_, _, lo, hi int) {
		h := s.all[lo*w : hi*w]
		s.hidden.forward(s.x[2*lo*d:2*hi*d], h)
		rectify(h)
	})
	scores := make([]float32, len(nodes)*s.out.out)
	parallel.ForEach(len(nodes), predictBlock, s.workers, func(_, _, lo, hi int) {
		second := make([]float32, (hi-lo)*2*w)
		for k, i := range nodes[lo:hi] {
			row := second[2*k*w : 2*(k+1)*w]
			copy(row[:w], s.all[int(i)*w:int(i+1)*w])
			mean(row[w:], s.all, w, s.a.Row(int(i)).Index)
		}
		s.out.forward(second, scores[lo*s.out.out:hi*s.out.out])
	})
	return scores
}
