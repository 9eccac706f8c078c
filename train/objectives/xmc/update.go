package xmc

import (
	"math"

	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// update is Update's scratch memory.
type update struct {
	// begin is per level: where each cluster's entries begin.
	begin   [][]int32
	touched []int32
	entries []gradient
	// sums holds the gradients of touched, one row each, and squares their
	// squared lengths.
	sums    []float32
	squares []float64
}

// gradient is one instance's contribution to a cluster: dw += value·z.
type gradient struct {
	slot  int32
	value float32
}

// Update takes one Adam step on the clusters that the first used slots scored, with gradients
// averaged over them. step counts from 1. Clusters that took no part keep their vectors and
// moments. Bias is corrected by the common step, as in PyTorch's SparseAdam: a row that takes part
// late or rarely moves by at most (1−β₁)/√(1−β₂) ≈ 3 rates when it does.
func (h *Heads) Update(used int, rate float64, step int64, workers int) {
	u := &h.update
	scaled := numeric.AdamRate(rate, step)
	mean := 1 / float32(used)
	for t := range h.Weights {
		h.gather(t, used)
		begin := u.begin[t]
		u.sums = grow(u.sums, len(u.touched)*h.Dim)
		u.squares = append(u.squares[:0], make([]float64, len(u.touched))...)
		parallel.ForEach(len(u.touched), 8, workers, func(_, _, lo, hi int) {
			for k := lo; k < hi; k++ {
				c := u.touched[k]
				g := u.sums[k*h.Dim : (k+1)*h.Dim]
				clear(g)
				for _, e := range u.entries[begin[c]:begin[c+1]] {
					numeric.Axpy(e.value*mean, h.slots[e.slot].z, g)
				}
				u.squares[k] = float64(numeric.Dot(g, g))
			}
		})
		shrink := h.shrink()
		keep := float32(1)
		if h.Problem.AllCandidates(t) {
			keep -= float32(rate * h.options.Decay)
		}
		parallel.ForEach(len(u.touched), 8, workers, func(_, _, lo, hi int) {
			for k := lo; k < hi; k++ {
				g := u.sums[k*h.Dim : (k+1)*h.Dim]
				scale(g, shrink)
				at := int(u.touched[k]) * h.Dim
				scale(h.Weights[t][at:at+h.Dim], keep)
				numeric.Adam(h.Weights[t][at:at+h.Dim], h.Mean[t][at:at+h.Dim], h.Square[t][at:at+h.Dim], g, scaled)
			}
		})
	}
}

// shrink returns the factor that clips the level's gradient.
func (h *Heads) shrink() float32 {
	if h.options.Clip == 0 {
		return 1
	}
	var sum float64
	for _, s := range h.update.squares {
		sum += s
	}
	if norm := math.Sqrt(sum); norm > h.options.Clip {
		return float32(h.options.Clip / norm)
	}
	return 1
}

func scale(x []float32, by float32) {
	if by == 1 {
		return
	}
	for i := range x {
		x[i] *= by
	}
}

// gather lists level t's gradients by cluster, within a cluster by slot:
// entries[begin[c]:begin[c+1]].
func (h *Heads) gather(t, used int) {
	u := &h.update
	begin := u.begin[t]
	clear(begin)
	total := 0
	for i := range h.slots[:used] {
		for _, c := range h.slots[i].levels[t].candidates {
			begin[c+1]++
			total++
		}
	}
	u.touched = u.touched[:0]
	for c := range int32(len(begin) - 1) {
		if begin[c+1] > 0 {
			u.touched = append(u.touched, c)
		}
		begin[c+1] += begin[c]
	}
	if cap(u.entries) < total {
		u.entries = make([]gradient, total, total+total/2)
	}
	u.entries = u.entries[:total]
	// Filling backwards leaves begin[c+1] at the cluster's first entry…
	for i := used - 1; i >= 0; i-- {
		l := &h.slots[i].levels[t]
		for k, c := range l.candidates {
			begin[c+1]--
			u.entries[begin[c+1]] = gradient{int32(i), l.score[k]}
		}
	}
	// …so shift it back into place.
	copy(begin, begin[1:])
	begin[len(begin)-1] = int32(total)
}
