package refreshing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/train/generation"
)

// A generation is derived from the rows, so damage to it stops nothing. The process that finds the damage
// marks the generation in the store. All processes then serve the generation before it, if there is one, and
// a new one is due (Due). Followers whose embeddings came from the damaged generation publish those of
// the one before it, so that the topic never mixes the vectors of two.

// Condemn marks a generation as damaged, unless verify finds it whole: what is damaged once in this process's memory,
// or on the way to it, may be whole in the store.
func (r *Refresh) Condemn(ctx context.Context, number int64, reason error, verify func() error) error {
	if err := verify(); err == nil {
		r.Log.Warn("an object was damaged when it was read first, and whole when it was read again; "+
			"look after this machine's memory and network", "generation", number, "error", reason)
		return nil
	}
	marked, err := generation.MarkDamaged(ctx, r.Store, number, reason, time.Now())
	if err != nil {
		return fmt.Errorf("mark generation %d as damaged: %w", number, err)
	}
	if marked {
		r.Log.Error("a generation is damaged; the one before it is served, and it is built again as a new one",
			"generation", number, "mark", generation.DamageKey(number), "reason", reason)
		r.noteDamage(&generation.Damage{Generation: number, Reason: reason.Error()})
	}
	return nil
}

// noteDamage notes the newest damaged generation that no whole one has replaced, nil for none.
func (r *Refresh) noteDamage(d *generation.Damage) {
	number := int64(0)
	if d != nil {
		number = d.Generation
		if r.damaged.Load() != number {
			r.Log.Warn("a generation is damaged, and a new one is due", "generation", number, "reason", d.Reason)
		}
	}
	r.damaged.Store(number)
	r.metrics.damaged.Set(float64(number))
}

// Damaged returns the newest damaged generation that no whole one has replaced, 0 for none.
func (r *Refresh) Damaged() int64 { return r.damaged.Load() }

// becauseDamaged says why a generation is due if the newest one is damaged, "" if it is not.
func (r *Refresh) becauseDamaged() string {
	damaged := r.damaged.Load()
	if newest := r.newest(); damaged == 0 || newest != nil && newest.Generation > damaged {
		return ""
	}
	return fmt.Sprintf("generation %d is damaged", damaged)
}

// noteChoice notes whether the choice of people can be read, by the outcome of a look for generations. As long as it
// cannot, the process goes on with the generation that it serves, or with none, and everything but generations goes on.
func (r *Refresh) noteChoice(err error) {
	switch known := r.undecided.Load() == nil; {
	case errors.Is(err, generation.ErrChoiceDamaged):
		if known {
			r.Log.Error("the generation that is served stays, and no other one is built or served until this is mended",
				"served", r.Served.Number(), "error", err)
		}
		r.undecided.Store(&err)
	case err == nil && !known:
		r.Log.Info("the choice of generations can be read again")
		r.undecided.Store(nil)
	}
}

// Unready says why no newer generation can be served, "" if there is no reason.
func (r *Refresh) Unready() string {
	if err := r.undecided.Load(); err != nil {
		return (*err).Error()
	}
	return ""
}
