package xmc

import (
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
)

// Heads are the matcher in training: a vector per cluster and level, and
// their Adam moments.
type Heads struct {
	Problem *Problem
	Dim     int
	// Weights, Mean and Square are per level, Clusters×Dim; Mean and Square
	// are Adam's moments.
	Weights, Mean, Square [][]float32

	options Options
	slots   []slot
	update  update
}

// slot holds what Update needs of one instance of a batch.
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

// NewHeads returns heads for batches of at most batch instances, all vectors
// zero.
func NewHeads(p *Problem, dim, batch int, o Options) *Heads {
	h := &Heads{Problem: p, Dim: dim, options: o.withDefaults(), slots: make([]slot, batch)}
	for _, l := range p.Levels {
		size := l.Clusters * dim
		h.Weights = append(h.Weights, make([]float32, size))
		h.Mean = append(h.Mean, make([]float32, size))
		h.Square = append(h.Square, make([]float32, size))
		h.update.begin = append(h.update.begin, make([]int32, l.Clusters+1))
	}
	for i := range h.slots {
		h.slots[i].z = make([]float32, dim)
		h.slots[i].levels = make([]scored, len(p.Levels))
	}
	return h
}

// Span says which levels a step trains: heads of levels [0, To) learn, and
// levels [From, To) also give the encoder its gradient.
type Span struct{ From, To int }

// Forward scores an instance by its embedding z, as number slotNo of the
// batch, and adds the gradient of the loss with respect to z to dz. targets
// are, per level, the clusters that hold the instance's labels, ascending, and how
// many (Problem.Targets); they are not kept. weight multiplies loss and
// gradient. Calls with different slots may run at the same time.
func (h *Heads) Forward(slotNo int, z []float32, targets []sparse.Vector, s Span, weight float32,
	dz []float32) (loss float64) {
	b := &h.slots[slotNo]
	copy(b.z, z)
	b.best = b.best[:0]
	share := 1 / float64(s.To-s.From)
	for t := range s.To {
		positives := targets[t]
		l := &b.levels[t]
		h.choose(t, positives.Index, b, l)
		h.score(t, z, l)
		if t+1 < s.To {
			b.best = top(b.best[:0], l.candidates, l.score, h.options.Matched)
		}
		l.q = grow(l.q, len(l.candidates))
		if !shares(l.q, l.candidates, positives) {
			l.candidates = l.candidates[:0] // no label in the tree: nothing to learn
			continue
		}
		e := h.options.price(l.score, l.q)
		push := t >= s.From
		if push {
			loss += float64(weight) * e * share
		}
		for i, c := range l.candidates {
			g := weight * float32(share) * h.options.Scale * l.score[i]
			l.score[i] = g
			if push {
				numeric.Axpy(g, h.row(t, c), dz)
			}
		}
	}
	for t := s.To; t < len(b.levels); t++ {
		b.levels[t].candidates = b.levels[t].candidates[:0]
	}
	return loss
}

// choose sets l's candidates: the negatives of the chosen kind and always the
// positives.
func (h *Heads) choose(t int, positives []int32, b *slot, l *scored) {
	b.above = b.above[:0]
	if h.options.Negatives != TFN {
		b.above = append(b.above, b.best...)
	}
	if h.options.Negatives != MAN {
		l.candidates = h.Problem.candidates(l.candidates[:0], t, positives, b.above)
		return
	}
	l.candidates = h.Problem.candidates(l.candidates[:0], t, nil, b.above)
	if n := len(l.candidates); n < h.Problem.Levels[t].Clusters {
		l.candidates = append(l.candidates, positives...)
		slices.Sort(l.candidates)
		l.candidates = slices.Compact(l.candidates)
	}
}

// score sets l.score to the scaled scores of l's candidates.
func (h *Heads) score(t int, z []float32, l *scored) {
	l.score = grow(l.score, len(l.candidates))
	for i, c := range l.candidates {
		l.score[i] = h.options.Scale * numeric.Dot(h.row(t, c), z)
	}
}

// row returns the vector of cluster c at level t.
func (h *Heads) row(t int, c int32) []float32 {
	return h.Weights[t][int(c)*h.Dim : int(c+1)*h.Dim]
}

func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n, n+n/2)
	}
	return s[:n]
}
