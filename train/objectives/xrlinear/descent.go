package xrlinear

import (
	"slices"

	"giantstream/train/numeric"
	"giantstream/train/numeric/lanes"
)

// descent solves the problems of up to lanes.Most children of one parent side
// by side, by dual coordinate descent; one per goroutine.
//
// The dual of the L2-loss SVM is
//
//	min over α ≥ 0 of ½ Σ_ij α_i α_j y_i y_j ⟨x_i, x_j⟩ + ½ Σ_i α_i²/(2C) − Σ_i α_i
//
// with w = Σ_i y_i α_i x_i. The children have the same x and different y. A row is visited for all
// of them at once: one walk along the row's features computes their margins, and another adds their
// steps to their w.
type descent struct {
	o     Options
	lanes int
	w     []float32 // columns × lanes
	beta  []float32 // rows × lanes: y_i α_i
	// Row k is a positive of the lanes positive[first[k]:first[k+1]].
	first, positive []int32
	order           []int32
	// Of the row that is being visited, by lane.
	sign, margin, next, delta []float32
}

// A row moves, and stays among the active rows, if its largest projected gradient exceeds this
// share of the tolerance. With a share of 1, each sweep of all rows would find a few rows that the
// last moves of others pushed just over the tolerance, and most of the time would go into the last
// sweeps.
const (
	moves = 0.1
	stays = 0.5
)

// between is the number of sweeps of the active rows between two of all rows.
const between = 3

// solve leaves the solutions in w and beta. positives are each child's, as rows of m. Training ends
// when a sweep of all rows finds none off by more than the tolerance.
func (d *descent) solve(m *matrix, positives [][]int32, r numeric.Rand) {
	d.begin(m, positives)
	// All gradients within ±ε/2 of zero is within ε of each other.
	tolerance := float32(d.o.Epsilon / 2)
	active, since := 0, 0
	for range d.o.Passes {
		since++
		whole := active == 0 || since > between
		if whole {
			active, since = len(d.order), 0
		}
		r.Shuffle(d.order[:active])
		var worst float32
		active, worst = d.sweep(m, d.order[:active], tolerance)
		if whole && worst <= tolerance {
			return
		}
	}
}

func (d *descent) begin(m *matrix, positives [][]int32) {
	n := m.n()
	d.lanes = lanes.Width(len(positives))
	d.w, d.beta = zeros(d.w, m.cols*d.lanes), zeros(d.beta, n*d.lanes)
	for _, row := range []*[]float32{&d.sign, &d.margin, &d.next, &d.delta} {
		*row = zeros(*row, d.lanes)
	}
	d.order = slices.Grow(d.order[:0], n)
	for k := range n {
		d.order = append(d.order, int32(k))
	}
	d.first = slices.Grow(d.first[:0], n+1)[:n+1]
	clear(d.first)
	total := 0
	for c, list := range positives {
		d.sign[c] = -1 // lanes without a child rest
		for _, k := range list {
			d.first[k]++
		}
		total += len(list)
	}
	for k := range n {
		d.first[k+1] += d.first[k]
	}
	d.positive = slices.Grow(d.positive[:0], total)[:total]
	for c, list := range positives {
		for _, k := range list {
			d.first[k]--
			d.positive[d.first[k]] = int32(c)
		}
	}
}

// sweep visits rows and moves them, all children at once. It moves the rows that stay active to the
// front. It returns their number and the largest projected gradient that it met.
func (d *descent) sweep(m *matrix, rows []int32, tolerance float32) (active int, worst float32) {
	for at, k := range rows {
		index, value := m.row(k)
		lanes.Project(d.margin, d.w, index, value)
		diagonal := m.ownSquareOf(k) + float32(0.5/d.o.Cost)
		curvature := m.square[k] + diagonal
		beta := d.beta[int(k)*d.lanes : (int(k)+1)*d.lanes]
		positive := d.positive[d.first[k]:d.first[k+1]]
		for _, c := range positive {
			d.sign[c] = 1
		}
		gradient := curvature * lanes.Step(d.next, d.delta, d.margin, d.sign, beta, diagonal, curvature)
		for _, c := range positive {
			d.sign[c] = -1
		}
		worst = max(worst, gradient)
		if gradient <= moves*tolerance {
			continue
		}
		copy(beta, d.next)
		lanes.Add(d.w, d.delta, index, value)
		if gradient > stays*tolerance {
			rows[at], rows[active] = rows[active], k
			active++
		}
	}
	return active, worst
}

func zeros(s []float32, n int) []float32 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
