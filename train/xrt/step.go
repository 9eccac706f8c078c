package xrt

import (
	"math"

	"giantstream/featurize/parallel"
	"giantstream/featurize/sparse"
	"giantstream/train/internal/rng"
	"giantstream/train/internal/vector"
	"giantstream/train/xmc"
)

// piece is how many texts go through the network at a time: it bounds the
// activations that it keeps.
const piece = 32

// streamDrop is the stream of what the network drops: of each step, of each of
// its texts.
const streamDrop = 'D'

// stepper takes optimiser steps; it owns their scratch memory.
type stepper struct {
	t     *trainer
	texts []string
	seeds []uint64
	// Per instance of a piece: the pooled vector and the gradient with
	// respect to it (Dim each), what the heads see and its gradient (Dim+1).
	pooled, grad []float32
	z, dz        []float32
	targets      [][]sparse.Vector // per instance of the batch
	weight, loss []float64
}

func newStepper(t *trainer) stepper {
	d, n := t.net.Dim(), max(t.o.Batch, piece)
	return stepper{
		t: t, pooled: make([]float32, piece*d), grad: make([]float32, piece*d),
		z: make([]float32, piece*(d+1)), dz: make([]float32, piece*(d+1)),
		targets: make([][]sparse.Vector, n), weight: make([]float64, n), loss: make([]float64, n),
	}
}

// take does one step at the given fraction of the learning rates and returns
// the mean loss before it.
func (s *stepper) take(batch []Example, span xmc.Span, fraction float64) (float64, error) {
	t := s.t
	if err := s.prepare(batch); err != nil {
		return 0, err
	}
	for lo := 0; lo < len(batch); lo += piece {
		if err := s.piece(batch, lo, min(lo+piece, len(batch)), span); err != nil {
			return 0, err
		}
	}
	var loss float64
	for _, l := range s.loss[:len(batch)] {
		loss += l
	}
	loss /= float64(len(batch))
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return 0, ErrDiverged
	}
	if _, err := t.net.Update(t.o.Rate * fraction); err != nil {
		return 0, err
	}
	t.heads.Update(len(batch), t.o.HeadRate*fraction, t.at.StageStep, t.o.Workers)
	return loss, nil
}

// prepare sets targets and weights of a batch; the weights are 1 on average.
func (s *stepper) prepare(batch []Example) error {
	var total float64
	for i, e := range batch {
		rows, labels, err := labelsOf(s.t.problem, e, s.t.levels)
		if err != nil {
			return err
		}
		w := 1.0
		if !s.t.o.Uniform {
			w = math.Sqrt(labels)
		}
		s.targets[i], s.weight[i] = rows, w
		total += w
	}
	for i := range batch {
		if total > 0 {
			s.weight[i] *= float64(len(batch)) / total
		}
	}
	return nil
}

// piece runs instances [lo, hi) of the batch forwards and backwards.
func (s *stepper) piece(batch []Example, lo, hi int, span xmc.Span) error {
	t, d := s.t, s.t.net.Dim()
	s.texts, s.seeds = s.texts[:0], s.seeds[:0]
	for i, e := range batch[lo:hi] {
		r := rng.New(t.o.Seed, streamDrop, uint64(t.at.Step), uint64(lo+i))
		s.texts, s.seeds = append(s.texts, e.Text), append(s.seeds, r.Uint64())
	}
	n := hi - lo
	if err := t.net.Forward(s.texts, s.seeds, s.pooled[:n*d]); err != nil {
		return err
	}
	mean := 1 / float32(len(batch))
	parallel.Each(n, 4, t.o.Workers, func(_, _, from, to int) {
		for k := from; k < to; k++ {
			z, dz := s.z[k*(d+1):(k+1)*(d+1)], s.dz[k*(d+1):(k+1)*(d+1)]
			clear(dz)
			norm := t.view(s.pooled[k*d:(k+1)*d], z)
			s.loss[lo+k] = t.heads.Forward(lo+k, z, s.targets[lo+k], span, float32(s.weight[lo+k]), dz)
			t.unview(z[:d], norm, dz[:d])
			for i, g := range dz[:d] {
				s.grad[k*d+i] = g * mean
			}
		}
	})
	return t.net.Backward(s.grad[:n*d])
}

// view writes what the heads see of a pooled vector to z, one number longer,
// and returns the pooled vector's length.
func (t *trainer) view(pooled, z []float32) (norm float32) {
	d := len(pooled)
	copy(z, pooled)
	z[d] = 1
	if t.o.Raw {
		return 1
	}
	return vector.Normalize(z[:d])
}

// unview turns the gradient with respect to z into that with respect to the
// pooled vector h = norm·z.
func (t *trainer) unview(z []float32, norm float32, dz []float32) {
	if !t.o.Raw {
		vector.Denormalize(z, norm, dz)
	}
}
