package graph

import (
	"context"
	"math"
	"time"

	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/relations"
)

// weights say what links weigh.
type weights struct {
	of     map[string]relations.Relation
	orders relations.Relation
	// Links lose half of their weight with each halfLife before clock, 0 for never; both in microseconds.
	halfLife float64
	clock    int64
}

// unknown is a relation that none of the sampled links has.
var unknown = relations.Relation{Weight: 1, Scale: 1}

// loadWeights returns what links weigh, nil in a plan without weights.
func loadWeights(ctx context.Context, t *work.Task, x Numbering) (*weights, error) {
	if !t.Plan.Weighted {
		return nil, nil
	}
	all, err := work.StatsOf[[]relations.Relation](ctx, t.Build, stages.Relations, 0)
	if err != nil {
		return nil, err
	}
	w := &weights{of: map[string]relations.Relation{}, orders: unknown, clock: x.NewestLink}
	if s := t.Doc.Settings.Relations; s != nil {
		w.halfLife = float64(s.HalfLife / time.Microsecond)
	}
	for _, r := range all {
		if r.Orders {
			w.orders = r
		} else {
			w.of[r.Kind] = r
		}
	}
	return w, nil
}

// weigh returns the weights of a row's entries, and makes those without weight lead to no node.
func (w *weights) weigh(r Row) (of []float32, dropped int) {
	if w == nil {
		return nil, 0
	}
	sums := make([]float64, len(r.ends))
	for _, f := range r.Facts {
		relation, ok := w.of[f.Kind]
		switch {
		case f.Orders:
			relation = w.orders
		case !ok:
			relation = unknown
		}
		v := relation.WeightOf(f.Weight)
		if w.halfLife > 0 && f.Time != 0 {
			v *= math.Exp2(-float64(w.clock-f.Time) / w.halfLife)
		}
		sums[f.Slot] += v
	}
	of = make([]float32, len(sums))
	for k, v := range sums {
		if of[k] = float32(min(v, math.MaxFloat32)); of[k] == 0 && r.ends[k] != noNode {
			r.ends[k], dropped = noNode, dropped+1
		}
	}
	return of, dropped
}
