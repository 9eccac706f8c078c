package refreshing

import (
	"context"
	"errors"

	"giantstream/train/generation"
)

// openCanary gives the canary topic the canary, nil for none. again says that it has turned out to be damaged, so that
// it is no more.
func (r *Refresh) openCanary(ctx context.Context, doc *generation.Doc) (again bool, err error) {
	now := r.canary
	if doc == nil {
		if now > 0 {
			r.Log.Info("a generation is no longer the canary", "generation", now)
			r.setCanary(nil)
		}
		return false, nil
	}
	if doc.Generation == now {
		return false, nil
	}
	open := func() error {
		g, err := generation.Open(ctx, r.Store, doc, r.Device)
		if err == nil {
			if r.CanaryTopic == "" {
				r.Log.Warn("a generation is a canary and there is no canary topic (sink.canary_topic), so no topic "+
					"has it; 'giantstream generations promote' has it served, and 'rollback' withdraws it",
					"generation", doc.Generation)
			} else {
				r.Log.Info("only the canary topic gets a new generation; 'giantstream generations promote' has it "+
					"served, and 'rollback' withdraws it", "generation", doc.Generation, "topic", r.CanaryTopic)
			}
			r.setCanary(g)
		}
		return err
	}
	if err = open(); errors.Is(err, generation.ErrDamaged) {
		return true, r.Condemn(ctx, doc.Generation, err, open)
	}
	return false, err
}

// setCanary has the followers of the canary topic use a generation, nil for none.
func (r *Refresh) setCanary(g *generation.Generation) {
	r.Served.SetCanary(g)
	r.canary = 0
	if g != nil {
		r.canary = g.Doc.Generation
	}
	r.metrics.canary.Set(float64(r.canary))
	r.Heads.WakeAll()
}
