package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
)

// A generation is derived from the rows, so damage to it stops nothing. The process that finds the damage
// marks the generation in the store. All processes then serve the generation before it, if there is one, and
// a new one is due (refreshDue). Followers whose embeddings came from the damaged generation publish those of
// the one before it, so that the topic never mixes the vectors of two.

// condemn marks a generation as damaged, after a second look: what is damaged once in this process's memory,
// or on the way to it, may be whole in the store.
func (s *Service) condemn(ctx context.Context, doc *generation.Doc, reason error, again func() error) error {
	if err := again(); err == nil {
		s.log.Warn("an object was damaged when it was read first, and whole when it was read again; "+
			"look after this machine's memory and network", "generation", doc.Generation, "error", reason)
		return nil
	}
	marked, err := generation.MarkDamaged(ctx, s.store, doc.Generation, reason, time.Now())
	if err != nil {
		return fmt.Errorf("mark generation %d as damaged: %w", doc.Generation, err)
	}
	if marked {
		s.log.Error("a generation is damaged; the one before it is served, and it is built again as a new one",
			"generation", doc.Generation, "mark", generation.DamageKey(doc.Generation), "reason", reason)
		s.noteDamage(&generation.Damage{Generation: doc.Generation, Reason: reason.Error()})
	}
	return nil
}

// noteDamage notes the newest damaged generation that no whole one has replaced, nil for none.
func (s *Service) noteDamage(d *generation.Damage) {
	number := int64(0)
	if d != nil {
		number = d.Generation
		if s.damaged.Load() != number {
			s.log.Warn("a generation is damaged, and a new one is due", "generation", number, "reason", d.Reason)
		}
	}
	s.damaged.Store(number)
	s.metrics.damaged.Set(float64(number))
}

// becauseDamaged says why a generation is due if the newest one is damaged, "" if it is not.
func (s *Service) becauseDamaged() string {
	damaged := s.damaged.Load()
	if newest := s.newest(); damaged == 0 || newest != nil && newest.Generation > damaged {
		return ""
	}
	return fmt.Sprintf("generation %d is damaged", damaged)
}

// blockage keeps why followers cannot go on by themselves: an object that they need is damaged or missing.
type blockage struct {
	mu   sync.Mutex
	last map[int]string // by shard, the reason of the last step that failed
	err  error
}

// failed notes a reason. Only one that comes twice in a row counts: a reader may have begun just before rows
// were merged, and find them in another place when it begins again.
func (s *blockage) failed(shard int, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[int]string{}
	}
	if s.last[shard] == reason.Error() {
		s.err = fmt.Errorf("shard %d: %w", shard, reason)
	}
	s.last[shard] = reason.Error()
}

// take returns the reason that has come last, and forgets it.
func (s *blockage) take() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// publishFailed is told by followers why a step failed. A device that has failed ends the service: it
// fails again until another process opens it.
func (s *Service) publishFailed(ctx context.Context, shard int, model *publish.Model, reason error) {
	if errors.Is(reason, compute.ErrFailed) {
		_ = s.fail(fmt.Errorf("shard %d: publish embeddings: %w", shard, reason)) // Run and Drain return it
		return
	}
	if !errors.Is(reason, sink.ErrDamaged) && !errors.Is(reason, sink.ErrNotFound) &&
		!errors.Is(reason, commitlog.ErrDamaged) {
		return
	}
	if c := model.Canary; c != nil && verifyParts(ctx, s.store, c.Model) != nil {
		model = c.Model
	}
	if verifyParts(ctx, s.store, model) == nil { // then it is the rows
		s.blocked.failed(shard, reason)
		return
	}
	doc, err := generation.Load(ctx, s.store, model.Generation)
	if err == nil {
		err = s.condemn(ctx, doc, reason, func() error { return verifyParts(ctx, s.store, model) })
	}
	if err != nil && !errors.Is(err, generation.ErrNone) && ctx.Err() == nil {
		s.log.Warn("a generation's embeddings seem to be damaged, which could not be noted; trying again",
			"generation", model.Generation, "reason", reason, "error", err)
	}
}

func verifyParts(ctx context.Context, store sink.Store, model *publish.Model) error {
	for _, part := range model.Parts {
		if err := sink.Verify(ctx, store, part); err != nil {
			return err
		}
	}
	return nil
}
