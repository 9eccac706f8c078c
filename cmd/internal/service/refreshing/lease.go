package refreshing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"giantstream/cmd/internal/service/process"
	"giantstream/sink"
	"giantstream/sink/lease"
)

// RefreshLease is the name of the lease that a process holds while it builds a generation.
const RefreshLease = "refresh"

// OpenLease opens that lease for this process.
func OpenLease(store sink.Store, log *slog.Logger) (*lease.Lease, error) {
	return process.Lease(store, RefreshLease, log)
}

// HoldRefresh takes the refresh lease for a command that builds a generation by hand. If another
// process holds it, HoldRefresh waits until that process shows a sign of life, which is an error,
// or has been silent for so long that it counts as dead.
func HoldRefresh(ctx context.Context, store sink.Store, log *slog.Logger) (*lease.Held, error) {
	l, err := OpenLease(store, log)
	if err != nil {
		return nil, err
	}
	return acquireLease(ctx, l, time.Second, log)
}

func acquireLease(ctx context.Context, l *lease.Lease, poll time.Duration, log *slog.Logger) (*lease.Held, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for waiting := false; ; waiting = true {
		held, err := l.Acquire(ctx)
		var by *lease.HeldError
		switch {
		case !errors.As(err, &by):
			return held, err
		case by.Seen:
			return nil, fmt.Errorf("another process is building a generation: %w; "+
				"wait until it is ready ('giantstream status'), or stop that process", err)
		case !waiting:
			log.Warn("another process seems to be building a generation; looking whether it is alive",
				"holder", by.Holder)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}
