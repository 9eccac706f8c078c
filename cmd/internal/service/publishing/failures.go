package publishing

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
	"giantstream/train/encoders/bert/compute"
)

// blockage keeps why followers cannot go on by themselves: an object that they need is damaged or missing.
type blockage struct {
	mu   sync.Mutex
	last map[int]string // by shard, the reason of the last step that failed
	err  error
}

// failed notes a reason. Only one that comes twice in a row counts: a reader may have begun just before rows
// were merged, and find them in another place when it begins again.
func (b *blockage) failed(shard int, reason error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		b.last = map[int]string{}
	}
	if b.last[shard] == reason.Error() {
		b.err = fmt.Errorf("shard %d: %w", shard, reason)
	}
	b.last[shard] = reason.Error()
}

// Blocked returns why followers cannot go on, nil for no reason, and forgets it.
func (p *Publish) Blocked() error { return p.blocked.take() }

// take returns the reason that has come last, and forgets it.
func (b *blockage) take() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.err
	b.err = nil
	return err
}

// failed notes why a follower's step failed. A device that has failed ends the service: it
// fails again until another process opens it.
func (p *Publish) failed(ctx context.Context, shard int, model *publish.Model, reason error) {
	if errors.Is(reason, compute.ErrFailed) {
		p.Fail(fmt.Errorf("shard %d: publish embeddings: %w", shard, reason))
		return
	}
	if !errors.Is(reason, sink.ErrDamaged) && !errors.Is(reason, sink.ErrNotFound) &&
		!errors.Is(reason, commitlog.ErrDamaged) {
		return
	}
	if verifyParts(ctx, p.Store, model) == nil { // then it is the rows
		p.blocked.failed(shard, reason)
		return
	}
	err := p.Damage.Condemn(ctx, model.Generation, reason, func() error { return verifyParts(ctx, p.Store, model) })
	if err != nil && ctx.Err() == nil {
		p.Log.Warn("a generation's embeddings seem to be damaged, which was not noted in the store; trying again",
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
