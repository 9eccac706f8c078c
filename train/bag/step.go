package bag

import (
	"giantstream/featurize/parallel"
	"giantstream/train/internal/vector"
	"giantstream/train/xmc"
)

// steps takes optimiser steps; it owns their scratch memory. Batches are made
// one ahead by a goroutine of their own.
type steps struct {
	t       *trainer
	batcher *batcher
	ready   chan *batch
	used    chan *batch
	// Per instance of a batch: embedding, its gradient, loss.
	z, dz []float32
	loss  []float64
}

func newSteps(t *trainer) steps {
	return steps{
		t: t, batcher: newBatcher(t.d.Features, t.table, t.o),
		z: make([]float32, t.o.Batch*t.d.Dim), dz: make([]float32, t.o.Batch*t.d.Dim),
		loss: make([]float64, t.o.Batch),
	}
}

// prepare begins to make the given batches; stop ends it. Between the two,
// take may be called once for each batch.
func (s *steps) prepare(batches [][]int32, epoch int) (stop func()) {
	s.ready, s.used = make(chan *batch), make(chan *batch, 2)
	s.used <- &batch{}
	s.used <- &batch{}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func(ready chan<- *batch, used <-chan *batch) {
		defer close(ended)
		for _, instances := range batches {
			b := <-used // there are two, and take gives them back
			s.batcher.fill(b, instances, epoch)
			select {
			case ready <- b:
			case <-quit:
				return
			}
		}
	}(s.ready, s.used)
	return func() {
		close(quit)
		<-ended
	}
}

// take does one step on the next batch at the given fraction of the learning
// rates and returns the mean loss before it.
func (s *steps) take(span xmc.Span, fraction float64) float64 {
	t := s.t
	b := <-s.ready
	n, dim := len(b.instances), t.d.Dim
	parallel.Each(n, 8, t.o.Workers, func(_, _, lo, hi int) {
		for k := lo; k < hi; k++ {
			s.loss[k] = s.instance(b, k, span, s.z[k*dim:(k+1)*dim], s.dz[k*dim:(k+1)*dim])
		}
	})
	t.heads.Update(n, t.o.HeadRate*fraction, t.at.Step, t.o.Workers)
	s.updateTable(b, float32(t.o.TableRate*fraction))
	var loss float64
	for _, l := range s.loss[:n] {
		loss += l
	}
	s.used <- b
	return loss / float64(n)
}

// instance runs instance k of the batch forwards and backwards: z becomes its
// embedding and dz the gradient with respect to h = ‖h‖·z.
func (s *steps) instance(b *batch, k int, span xmc.Span, z, dz []float32) float64 {
	t := s.t
	clear(z)
	clear(dz)
	for p := b.start[k]; p < b.start[k+1]; p++ {
		vector.Axpy(b.values[p], t.table.vector(int(b.rows[p])), z)
	}
	norm := vector.Normalize(z)
	i := b.instances[k]
	loss := t.heads.Forward(k, z, t.problem.Targets(int(i)), span, t.weight[i], dz)
	vector.Denormalize(z, norm, dz)
	return loss
}

// updateTable moves each row of the batch against its gradient. Adagrad does not see
// the scale of gradients, so they stay sums over the batch.
func (s *steps) updateTable(b *batch, rate float32) {
	t, dim := s.t, s.t.d.Dim
	parallel.Each(len(b.touched), 64, t.o.Workers, func(_, _, lo, hi int) {
		g := make([]float32, dim)
		for j := lo; j < hi; j++ {
			row := int(b.touched[j])
			clear(g)
			for _, u := range b.uses[b.from[j]:b.from[j+1]] {
				vector.Axpy(u.x, s.dz[int(u.k)*dim:int(u.k+1)*dim], g)
			}
			t.table.adagrad(row, t.square, g, rate)
		}
	})
}
