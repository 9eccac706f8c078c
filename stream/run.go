package stream

import (
	"context"
	"fmt"
	"time"
)

// Feed is where a shard's mutations come from.
type Feed interface {
	// Next returns the next batch, or an empty one when nothing came
	// within wait. Within a topic, records come in offset order.
	Next(ctx context.Context, wait time.Duration) (Batch, error)
}

// Run applies what the feed gives and commits windows as they fill up, until
// the context ends, another worker takes over (ErrFenced), or an error. The
// feed must start at Next. Run never returns nil.
func (s *Shard) Run(ctx context.Context, feed Feed) error {
	for {
		batch, err := feed.Next(ctx, s.wait())
		if err != nil {
			return fmt.Errorf("shard %d: read the input: %w", s.opts.Shard, err)
		}
		idle := batch.CaughtUp && len(batch.Mutations) == 0 && !s.moves(batch.Next)
		if err := s.Apply(ctx, batch); err != nil {
			return err
		}
		if idle && s.below(s.resume) {
			return s.incomplete()
		}
		drain := batch.CaughtUp && s.opts.Drain != nil && s.opts.Drain()
		if drain || s.window.full(s.opts.Window, s.opts.Clock()) || s.state.pending.crowded() {
			if _, err := s.Commit(ctx); err != nil {
				return err
			}
		}
		s.checkpointIfDue(drain)
	}
}

// drainWait is how long a shard that drains waits for more.
const drainWait = 50 * time.Millisecond

// wait is how long the feed may take: until the window's time is over.
func (s *Shard) wait() time.Duration {
	wait := s.opts.Window.Time
	if s.opts.Drain != nil && s.opts.Drain() {
		// The feed says that it has caught up with its next batch, be it empty.
		wait = min(wait, drainWait)
	}
	if s.window.since.IsZero() || s.below(s.resume) {
		return wait
	}
	left := s.opts.Window.Time - s.opts.Clock().Sub(s.window.since)
	return max(min(left, wait), time.Millisecond)
}

// incomplete explains why the shard cannot get to where it can commit.
func (s *Shard) incomplete() error {
	for topic, next := range s.resume {
		if have := s.position[topic]; have < next {
			s.failed = fmt.Errorf("shard %d: %w: %s was read to its end at offset %d, the shard was at %d before; "+
				"restore the topic, or start a new pipeline and backfill it", s.opts.Shard, ErrLogIncomplete, topic, have, next)
		}
	}
	return s.failed
}
