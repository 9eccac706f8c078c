// Package retry spaces the attempts of an operation that may succeed later: a
// broker that is away, a request that collided with another one.
//
// A Loop repeats what must succeed in the end. Callers that give up, or do something else between two
// attempts, have loops of their own with a Backoff, which says how long to wait. Which errors no
// repetition mends is decided where they are made: Final asks them.
//
// Pauses have no jitter: the callers are a handful of goroutines per process, and stores and
// brokers limit their clients by themselves. Tests control time through testing/synctest.
package retry

import (
	"context"
	"time"
)

// Backoff yields pauses that double from Min up to Max. It is for one
// goroutine.
type Backoff struct {
	Min time.Duration
	Max time.Duration // 0: no bound

	next time.Duration
}

// Next returns the pause before the next attempt.
func (b *Backoff) Next() time.Duration {
	pause := max(b.next, b.Min)
	if b.next = 2 * pause; b.Max > 0 {
		b.next = min(b.next, b.Max)
	}
	return pause
}

// Reset starts again at Min. Call it after a success.
func (b *Backoff) Reset() { b.next = 0 }

// Wait sleeps until the next attempt is due. It returns ctx.Err() if ctx ends first.
func (b *Backoff) Wait(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Sleep waits for d, or until ctx ends, when it returns ctx.Err().
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Poll calls done, with a pause after each call, until done returns true or an error, or ctx ends. The first pause is a
// sixteenth of the longest, for what takes a moment; each is twice the one before. Once ctx has ended, an error of Poll
// is the cause of ctx.
func Poll(ctx context.Context, longest time.Duration, done func() (bool, error)) error {
	pause := Backoff{Min: longest / 16, Max: longest}
	for {
		ok, err := done()
		if err == nil && !ok {
			err = pause.Wait(ctx)
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || ok {
			return err
		}
	}
}
