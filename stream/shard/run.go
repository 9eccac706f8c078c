package shard

import (
	"context"
	"fmt"
	"time"

	"giantstream/stream/mutation"
)

// Feed is where a shard's mutations come from.
type Feed interface {
	// Next returns the next batch, or an empty one if nothing came within wait. Within a topic,
	// records come in offset order.
	Next(ctx context.Context, wait time.Duration) (mutation.Batch, error)
}

// Run applies the batches of the feed, which must start at Next, and commits windows as they fill
// up. It returns when the context ends, when another worker has taken over (ErrFenced), or on
// another error; never nil.
func (s *Shard) Run(ctx context.Context, feed Feed) error {
	for {
		if s.opts.Bounds != nil {
			s.opts.Window = s.opts.Bounds()
		}
		batch, err := feed.Next(ctx, s.wait())
		if err != nil {
			return s.unreadable(ctx, err)
		}
		if err := s.checkInputsIfDue(ctx); err != nil {
			return err
		}
		idle := batch.CaughtUp && len(batch.Mutations) == 0 && !s.moves(batch.Next)
		if err := s.Apply(ctx, batch); err != nil {
			return err
		}
		if idle && s.below(s.resume) {
			return s.incomplete()
		}
		drain := batch.CaughtUp && s.opts.Drain != nil && s.opts.Drain()
		if s.opts.Load {
			if drain && s.loaded.IsZero() {
				s.loaded = s.opts.Clock()
			}
			drain = drain && idle // the other shards send mirror records until they are idle, too
		}
		if drain || s.full() {
			began := s.opts.Clock()
			if _, err := s.Commit(ctx); err != nil {
				return err
			}
			s.committing = s.opts.Clock().Sub(began)
		}
		s.checkpointIfDue(drain)
	}
}

// loading reports whether the shard gathers the first load of a graph in one window.
func (s *Shard) loading() bool { return s.opts.Load && s.head == nil }

// full reports whether the window must end. That of a load may last as long as any other from the
// moment when the shard has caught up.
func (s *Shard) full() bool {
	now := s.opts.Clock()
	if s.loading() {
		return !s.loaded.IsZero() && now.Sub(s.loaded) >= s.opts.Window.Time
	}
	limit := s.opts.Window
	limit.Time = s.windowTime()
	return s.window.full(limit, now) || s.state.pending.overHalf()
}

// longest is how many times Window.Time a window may last.
const longest = 10

// windowTime is how long a window lasts: Window.Time, or as long as the last commit took if that is more. A worker
// that cannot keep up would otherwise commit most of the time, and write the same rows again and again.
func (s *Shard) windowTime() time.Duration {
	return max(s.opts.Window.Time, min(s.committing, longest*s.opts.Window.Time))
}

const (
	// drainWait is how long a draining shard waits for more.
	drainWait = 50 * time.Millisecond
	// idleWait is how long any other shard waits for more, before it looks whether it is to drain.
	idleWait = 200 * time.Millisecond
)

// wait is how long the feed may wait for records: until the window's time is over.
func (s *Shard) wait() time.Duration {
	wait := s.opts.Window.Time
	switch {
	case s.opts.Drain == nil:
	case s.opts.Drain():
		// Only the next batch, even an empty one, says that the feed has caught up.
		wait = min(wait, drainWait)
	default:
		wait = min(wait, idleWait)
	}
	if s.window.since.IsZero() || s.below(s.resume) || s.loading() {
		return wait
	}
	left := s.windowTime() - s.opts.Clock().Sub(s.window.since)
	return max(min(left, wait), time.Millisecond)
}

// incomplete returns why the shard cannot get to where it may commit.
func (s *Shard) incomplete() error {
	for topic, next := range s.resume {
		if have := s.position[topic]; have < next {
			s.failed = fmt.Errorf("%w: %s was read to its end at offset %d, the shard was at %d before; "+
				"restore the topic, or start a new pipeline and backfill it",
				ErrLogIncomplete, topic, have, next)
		}
	}
	return s.failed
}
