package xmc

import (
	"math"

	"giantstream/featurize/parallel"
	"giantstream/train/internal/optim"
	"giantstream/train/internal/vector"
)

// Scale is the inverse temperature s of the softmax over cosines.
const Scale = 7

// Heads are the matcher in training: a vector per cluster and level, and
// their Adam moments.
type Heads struct {
	Problem *Problem
	Dim     int
	// Weights, Mean and Square are per level, Clusters×Dim; Mean and Square
	// are Adam's moments.
	Weights, Mean, Square [][]float32

	slots []slot
	// Update's scratch, per level: where each cluster's entries begin.
	begin   [][]int32
	touched []int32
	entries []gradient
}

// slot holds what one instance of a batch leaves for Update.
type slot struct {
	z      []float32
	levels []scored
	best   []int32
	above  []int32
}

// scored is one level's candidates and their gradient or score.
type scored struct {
	candidates []int32
	score, q   []float32
}

// gradient is one instance's contribution to a cluster: dw += value·z.
type gradient struct {
	slot  int32
	value float32
}

// NewHeads returns heads for batches of at most batch instances, all vectors
// zero.
func NewHeads(p *Problem, dim, batch int) *Heads {
	h := &Heads{Problem: p, Dim: dim, slots: make([]slot, batch)}
	for _, l := range p.Levels {
		size := l.Clusters * dim
		h.Weights = append(h.Weights, make([]float32, size))
		h.Mean = append(h.Mean, make([]float32, size))
		h.Square = append(h.Square, make([]float32, size))
		h.begin = append(h.begin, make([]int32, l.Clusters+1))
	}
	for i := range h.slots {
		h.slots[i].z = make([]float32, dim)
		h.slots[i].levels = make([]scored, len(p.Levels))
	}
	return h
}

// Centroids starts each cluster at the normalised sum of its labels' vectors
// (labels is nodes×Dim). For a linear start this is where the task begins to
// make sense: the encoder predicts the mean of its labels' vectors.
func (h *Heads) Centroids(t Tree, labels []float32) {
	for label := range len(labels) / h.Dim {
		at := len(h.Weights)
		for level := t.Levels() - 1; level >= 0 && at > 0; level-- {
			at--
			if c := t.Cluster(level, label); c >= 0 {
				vector.Axpy(1, labels[label*h.Dim:(label+1)*h.Dim], h.Weights[at][int(c)*h.Dim:int(c+1)*h.Dim])
			}
		}
	}
	for _, w := range h.Weights {
		for at := 0; at < len(w); at += h.Dim {
			vector.Normalize(w[at : at+h.Dim])
		}
	}
}

// Span says which levels a step trains: heads of levels [0, To) learn, and
// levels [From, To) also give the encoder its gradient.
type Span struct{ From, To int }

// Forward scores one instance of the problem by its unit embedding z, as
// number slotNo of the batch, and adds the gradient of the loss with respect
// to z to dz. weight multiplies loss and gradient. Calls with different slots
// may run at the same time.
func (h *Heads) Forward(slotNo int, z []float32, instance int, s Span, weight float32, dz []float32) (loss float64) {
	b := &h.slots[slotNo]
	copy(b.z, z)
	b.best = b.best[:0]
	share := 1 / float64(s.To-s.From)
	for t := range s.To {
		positives := h.Problem.Levels[t].Targets.Row(instance)
		l := &b.levels[t]
		b.above = append(b.above[:0], b.best...)
		l.candidates = h.Problem.candidates(l.candidates[:0], t, positives.Index, b.above)
		h.score(t, z, l)
		b.best = top(b.best[:0], l.candidates, l.score, matched)
		l.q = grow(l.q, len(l.candidates))
		if !shares(l.q, l.candidates, positives) {
			l.candidates = l.candidates[:0] // no label in the tree: nothing to learn
			continue
		}
		e := crossEntropy(l.score, l.q)
		push := t >= s.From
		if push {
			loss += float64(weight) * e * share
		}
		for i, c := range l.candidates {
			g := weight * float32(share) * Scale * (l.score[i] - l.q[i])
			l.score[i] = g
			if push {
				vector.Axpy(g, h.Weights[t][int(c)*h.Dim:int(c+1)*h.Dim], dz)
			}
		}
	}
	for t := s.To; t < len(b.levels); t++ {
		b.levels[t].candidates = b.levels[t].candidates[:0]
	}
	return loss
}

// score sets l.score to the scaled scores of l's candidates.
func (h *Heads) score(t int, z []float32, l *scored) {
	l.score = grow(l.score, len(l.candidates))
	for i, c := range l.candidates {
		l.score[i] = Scale * vector.Dot(h.Weights[t][int(c)*h.Dim:int(c+1)*h.Dim], z)
	}
}

// crossEntropy replaces scores by their softmax p and returns −Σ q ln p.
func crossEntropy(scores, q []float32) float64 {
	top := scores[0]
	for _, s := range scores {
		top = max(top, s)
	}
	var sum, cross float64
	for i, s := range scores {
		if q[i] != 0 {
			cross += float64(q[i]) * float64(s-top)
		}
		e := math.Exp(float64(s - top))
		scores[i] = float32(e)
		sum += e
	}
	for i := range scores {
		scores[i] = float32(float64(scores[i]) / sum)
	}
	return math.Log(sum) - cross
}

func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n, n+n/2)
	}
	return s[:n]
}

// Update takes one Adam step on the clusters that the first used slots
// scored, with gradients averaged over them. step counts from 1. Moments of
// clusters that took no part rest (PyTorch's SparseAdam).
func (h *Heads) Update(used int, rate float64, step int64, workers int) {
	scaled := optim.Rate(rate, step)
	mean := 1 / float32(used)
	for t := range h.Weights {
		h.gather(t, used)
		begin := h.begin[t]
		parallel.Each(len(h.touched), 8, workers, func(_, _, lo, hi int) {
			g := make([]float32, h.Dim)
			for _, c := range h.touched[lo:hi] {
				clear(g)
				for _, e := range h.entries[begin[c]:begin[c+1]] {
					vector.Axpy(e.value*mean, h.slots[e.slot].z, g)
				}
				at := int(c) * h.Dim
				optim.Adam(h.Weights[t][at:at+h.Dim], h.Mean[t][at:at+h.Dim], h.Square[t][at:at+h.Dim], g, scaled)
			}
		})
	}
}

// gather lists level t's gradients by cluster, within a cluster by slot:
// h.entries[begin[c]:begin[c+1]].
func (h *Heads) gather(t, used int) {
	begin := h.begin[t]
	clear(begin)
	total := 0
	for i := range h.slots[:used] {
		for _, c := range h.slots[i].levels[t].candidates {
			begin[c+1]++
			total++
		}
	}
	h.touched = h.touched[:0]
	for c := range int32(len(begin) - 1) {
		if begin[c+1] > 0 {
			h.touched = append(h.touched, c)
		}
		begin[c+1] += begin[c]
	}
	if cap(h.entries) < total {
		h.entries = make([]gradient, total, total+total/2)
	}
	h.entries = h.entries[:total]
	// Filling backwards leaves begin[c+1] at the cluster's first entry…
	for i := used - 1; i >= 0; i-- {
		l := &h.slots[i].levels[t]
		for k, c := range l.candidates {
			begin[c+1]--
			h.entries[begin[c+1]] = gradient{int32(i), l.score[k]}
		}
	}
	// …so shift it back into place.
	copy(begin, begin[1:])
	begin[len(begin)-1] = int32(total)
}
