package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
)

// standing is which generations are to be served, as far as a process knows.
type standing struct {
	// served is the one for the embeddings topic, and canary the one for the canary topic: the canary, or the one that
	// is served where there is none.
	served, canary *generation
	// newest is the number of the newest that is ready.
	newest int64
	// passedOver is the newest that was withdrawn, 0 if a newer one is served.
	passedOver int64
	// asOf is when the process began to look.
	asOf time.Time
}

// generationOn returns the generation that is published on a topic, nil before the first.
func (s *standing) generationOn(outlet commitlog.Outlet) *generation {
	switch {
	case s == nil:
		return nil
	case outlet == commitlog.Canary:
		return s.canary
	}
	return s.served
}

// model returns what a shard's follower needs, nil before the first generation.
func (s *standing) model(outlet commitlog.Outlet, shard int) *publish.Model {
	m := s.generationOn(outlet).model(shard)
	if m != nil {
		m.PassedOver, m.AsOf = s.passedOver, s.asOf
	}
	return m
}

// outlets are the topics that embeddings are published to.
func (w *world) outlets() []commitlog.Outlet {
	if w.plan.canary {
		return []commitlog.Outlet{commitlog.Served, commitlog.Canary}
	}
	return []commitlog.Outlet{commitlog.Served}
}

// verdict returns what the operators decide about a canary, and whether they have decided by now. They decide at any
// time: a generation that is ready later is no canary. In the end all are decided.
func (w *world) verdict(g int64) (promoted, decided bool) {
	if !w.plan.canary || g == 1 {
		return true, true
	}
	r := w.dice.randFor("verdict", strconv.FormatInt(g, 10))
	promoted = !oneIn(r, 3)
	at := time.Duration(g-1)*w.plan.refreshEvery + drawDuration(r, 0, 2*w.plan.refreshEvery)
	return promoted, w.isHealed() || time.Since(w.start) > at
}

// stand returns which generations are to be served now, nil before the first.
func (w *world) stand(ctx context.Context, s sink.Store) (*standing, error) {
	began := time.Now()
	numbers, err := numbersIn(ctx, s, "/ready.json")
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	at := &standing{newest: numbers[len(numbers)-1], asOf: began}
	var canary int64
	for _, g := range slices.Backward(numbers) {
		switch promoted, decided := w.verdict(g); {
		case !decided && canary == 0 && at.passedOver == 0:
			canary = g
		case decided && !promoted:
			at.passedOver = max(at.passedOver, g)
		case decided:
			if at.served, err = readGeneration(ctx, s, g); err != nil {
				return nil, err
			}
			at.canary = at.served
			if canary > 0 {
				at.canary, err = readGeneration(ctx, s, canary)
			}
			return at, err
		}
	}
	return nil, fmt.Errorf("generation 1 is not among %v", numbers)
}
